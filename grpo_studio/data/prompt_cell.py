"""What the cell of a prompt holds: the messages before the question, the question, and all that is wrong. Pure.

One reading serves both the rows that are trained on and the faults that are counted, so that they cannot disagree.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from grpo_studio.data.chat_forms import ROLES, SAID_BY, looks_like_chat, messages_in, number_text, text_of_content
from grpo_studio.data.faults import Fault, Faults
from grpo_studio.data.odd_text import text_faults
from grpo_studio.shown import shown
from grpo_studio.verifiers.blank import is_blank

Message = dict[str, str]
_TOOL_ROLES = frozenset({
    "tool", "tool_call", "tool_calls", "tool_response", "function", "function_call", "function_response",
    "observation", "ipython",
})  # fmt: skip
_TOOL_KEYS = ("tool_calls", "function_call", "tool_call_id")
_TOOL_BLOCKS = frozenset({"tool_use", "tool_result", "tool_call", "function_call"})
_NOTHING: tuple[Any, ...] = (None, False, "", "[]", "{}", "null", [], {})
"""How data sets fill the keys of tool calls in messages without one."""


@dataclass(frozen=True)
class PromptCell:
    """A prompt as it was read; without a usable one `question` is empty and a fault is fatal.

    `before` holds at most one system message, which is then the first.
    """

    before: tuple[Message, ...] = ()
    question: str = ""
    faults: tuple[Fault, ...] = ()

    @property
    def usable(self) -> bool:
        return not any(fault.fatal for fault in self.faults)


def read_prompt(value: Any) -> PromptCell:
    """Read the value of a prompt's column: text, a number, or a chat in any form of `chat_forms`."""
    faults = Faults()
    items = messages_in(value)
    if items is not None:
        before, question = _read_chat(items, faults)
    else:
        before, question = [], _read_text(value, faults)
    if faults.fatal:
        return PromptCell(faults=faults.all())
    for text in [message["content"] for message in before] + [question]:
        text_faults(text, faults)
    return PromptCell(faults=faults.all()) if faults.fatal else PromptCell(tuple(before), question, faults.all())


def _read_text(value: Any, faults: Faults) -> str:
    """The text of what is no chat."""
    if value is None or (isinstance(value, float | Decimal) and math.isnan(value)):
        faults.add("missing_prompt", "the prompt is missing")
    elif isinstance(value, str):
        if is_blank(value):
            what = "holds nothing that shows" if value.strip() else "is white space only" if value else "is empty"
            faults.add("empty_prompt", f"the prompt {what}")
        elif looks_like_chat(value):
            what = "the prompt is text that looks like a chat but is not JSON of messages; it is asked as it stands"
            faults.add("chat_as_text", what)
        return value
    elif isinstance(value, list | tuple) and not value:
        faults.add("empty_prompt", "the prompt is an empty list")
    elif (written := number_text(value)) is not None:
        faults.add("number_prompt", f"the prompt is the number {shown(written)}, read as text")
        return written
    else:
        faults.add("prompt_not_text", f"the prompt is {_kind(value)}, not text: {shown(value, 40)}")
    return ""


def _read_chat(items: Sequence[Any], faults: Faults) -> tuple[list[Message], str]:
    """The messages before the last one, and the text of the last one, which is the user's when no fault is fatal."""
    messages = [_read_message(item, f"message {place} of {len(items)}", faults) for place, item in enumerate(items, 1)]
    turns = [message for message in messages if message is not None]
    if turns and turns[-1]["role"] == "assistant" and messages[-1] is not None:
        what = "the chat ends with a message of the assistant, not with a question"
        faults.add("assistant_last", what)
    if faults.fatal:
        return [], ""
    leading = next((place for place, turn in enumerate(turns) if turn["role"] != "system"), len(turns))
    systems, turns = _one_system(turns[:leading], faults), turns[leading:]
    if not any(turn["role"] == "user" for turn in turns):
        faults.add("no_user_turn", "the chat holds no message of the user")
    elif any(turn["role"] == "system" for turn in turns):
        what = "a system message stands in the middle of the chat, where few chat templates take one"
        faults.add("late_system_message", what)
    elif is_blank(turns[-1]["content"]):
        faults.add("empty_prompt", "the last message of the user is empty")
    if faults.fatal:
        return [], ""
    _doubts(turns, faults)
    return [*systems, *turns[:-1]], turns[-1]["content"]


def _read_message(item: Any, where: str, faults: Faults) -> Message | None:
    """A message by its role and text, or None with a fault."""
    if not isinstance(item, Mapping):
        faults.add("broken_chat", f"{where} is {_kind(item)}, without role and content")
        return None
    if any(item.get(key) not in _NOTHING for key in _TOOL_KEYS):
        faults.add("tool_calls", f"{where} calls a tool or answers a call")
        return None
    said_by, said = next((keys for keys in SAID_BY if item.get(keys[0]) is not None), SAID_BY[0])
    written = item.get(said_by)
    if not isinstance(written, str):
        faults.add("broken_chat", f"{where} has no role")
        return None
    name = written.strip().lower()
    if name in _TOOL_ROLES:
        faults.add("tool_calls", f"{where} is of a tool (role {shown(written, 30)})")
        return None
    if name not in ROLES:
        faults.add("odd_role", f"{where} has the role '{shown(written, 30)}', which no chat template knows")
        return None
    content = _content(item.get(said), where, faults)
    return None if content is None else {"role": ROLES[name], "content": content}


def _content(content: Any, where: str, faults: Faults) -> str | None:
    text = text_of_content(content)
    if content is None:
        faults.add("broken_chat", f"{where} has no content")
    elif text is None:
        types = [block.get("type") for block in content if isinstance(block, Mapping)] if _is_list(content) else []
        if _TOOL_BLOCKS.intersection(kind for kind in types if isinstance(kind, str)):
            faults.add("tool_calls", f"{where} calls a tool or answers a call")
        else:
            faults.add("prompt_not_text", f"{where} holds {shown(content, 40)}, not text")
    elif number_text(content) is not None:
        faults.add("number_prompt", f"{where} is the number {shown(text)}, read as text")
    return text


def _one_system(systems: Sequence[Message], faults: Faults) -> list[Message]:
    """One system message of all that begin a chat: never two, and none for empty ones."""
    texts = list(dict.fromkeys(message["content"] for message in systems if not is_blank(message["content"])))
    if len(systems) > 1:
        what = f"the chat begins with {len(systems)} system messages; they are made one"
        faults.add("two_system_messages", what)
    return [{"role": "system", "content": "\n\n".join(texts)}] if texts else []


def _doubts(turns: Sequence[Message], faults: Faults) -> None:
    """What some chat templates do not take in the turns after the system message."""
    roles = [turn["role"] for turn in turns]
    if any(one == other for one, other in itertools.pairwise(roles)):
        faults.add("same_role_twice", "two messages of one role follow each other in the chat")
    if any(is_blank(turn["content"]) for turn in turns):
        faults.add("empty_turn", "an earlier message of the chat is empty")


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _kind(value: Any) -> str:
    names = {bool: "a truth value", list: "a list", tuple: "a list", dict: "a mapping", bytes: "bytes", str: "text"}
    return names.get(type(value), "a number" if isinstance(value, int | float | Decimal) else "a value")
