"""The forms in which data sets write a chat, read as a list of messages. Pure; knows nothing of what makes one good.

Known: role and content; ShareGPT's from and value; one mapping of lists (as some libraries keep a list of mappings);
one message alone; content blocks without a role; and text of a list of messages, as JSON or as Python prints it (which
libraries write into cells of CSV).
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

_LIST_OF_MESSAGES = re.compile(r"""\s*\[\s*\{\s*["'](?:role|content|from|value)["']\s*:""")
_LONGEST_NUMBER = 4000  # bits; Python itself refuses to print an integer of over 4,300 digits
_LONGEST_PRINTED, _MOST_PRINTED = 1_000_000, 2000
SAID_BY = (("role", "content"), ("from", "value"))
ROLES = {
    "system": "system", "developer": "system",
    "user": "user", "human": "user", "prompter": "user",
    "assistant": "assistant", "gpt": "assistant", "chatgpt": "assistant", "bot": "assistant", "model": "assistant",
    "ai": "assistant",
}  # fmt: skip
"""Roles by the names that data sets give them, in small letters."""


def messages_in(value: Any) -> list[Any] | None:
    """The messages of a value that is a chat, sound or broken, as they stand; None for what is no chat at all."""
    if isinstance(value, str):
        return _messages_in_text(value)
    if isinstance(value, Mapping):
        return _messages_in_mapping(value)
    if not isinstance(value, list | tuple) or not value:
        return None
    if all(isinstance(item, Mapping) and "type" in item and not _names_speaker(item) for item in value):
        return [{"role": "user", "content": list(value)}]
    return list(value) if any(_is_message(item) for item in value) else None


def looks_like_chat(text: str) -> bool:
    """Whether a text begins as a written-out list of messages does, in JSON or as Python prints it."""
    return _LIST_OF_MESSAGES.match(text) is not None and any(who in text and said in text for who, said in SAID_BY)


def _messages_in_text(text: str) -> list[Any] | None:
    if not looks_like_chat(text):
        return None
    value = _read_list(text)
    # A question may well hold JSON of something else; only what has all of a message's parts is no text.
    sound = isinstance(value, list) and value and all(_is_whole(item) for item in value)
    return list(value) if sound else None


def _read_list(text: str) -> Any:
    """The list that is written, in JSON or as Python prints it; None for what is neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    # What Python prints of a chat holds no bytes, no sums and no deep nesting; more is not read by its reader.
    if len(text) > _LONGEST_PRINTED or text.count("[") + text.count("{") > _MOST_PRINTED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _messages_in_mapping(value: Mapping[Any, Any]) -> list[Any] | None:
    for said_by, said in SAID_BY:
        who, what = value.get(said_by), value.get(said)
        if isinstance(who, str) and said in value:
            return [value]
        if isinstance(who, list) and isinstance(what, list) and len(who) == len(what) > 0:
            return [{"role": role, "content": content} for role, content in zip(who, what, strict=True)]
    return None


def _names_speaker(item: Mapping[Any, Any]) -> bool:
    return any(who in item for who, _ in SAID_BY)


def _is_whole(item: Any) -> bool:
    return isinstance(item, Mapping) and any(isinstance(item.get(who), str) and said in item for who, said in SAID_BY)


def _is_message(item: Any) -> bool:
    return isinstance(item, Mapping) and (_names_speaker(item) or "content" in item)


def text_of_content(content: Any) -> str | None:
    """The text of a message's content: text, a number, or blocks of text; None for what holds anything else."""
    if isinstance(content, str):
        return content
    if (number := number_text(content)) is not None:
        return number
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, Sequence) or isinstance(content, bytes | bytearray):
        return None
    parts = [_text_of_block(block) for block in content]
    return None if any(part is None for part in parts) else "".join(part for part in parts if part is not None)


def number_text(value: Any) -> str | None:
    """A number as text; None for anything else, a truth value, an infinity or an integer of over 1,200 digits."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    sound = value.bit_length() <= _LONGEST_NUMBER if isinstance(value, int) else math.isfinite(value)
    return str(value) if sound else None


def _text_of_block(block: Any) -> str | None:
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping) and block.get("type", "text") in ("text", "input_text"):
        text = block.get("text")
        return text if isinstance(text, str) else None
    return None
