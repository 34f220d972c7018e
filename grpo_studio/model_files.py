"""What the small files of a model say, read without loading it: config, generation settings, tokenizer, weights' heads.

They are a stranger's: sizes are bounded, and a damaged file is told by its name. No torch here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from grpo_studio.chat_templates import one_of
from grpo_studio.errors import ModelError
from grpo_studio.shown import shown

LARGEST_JSON = 32 << 20
LARGEST_HEADER = 100 << 20
LARGEST_README = 1 << 20
LONGEST_NAME = 200
"""Characters of a token or an architecture; what is longer is no name."""
MOST_SHARDS = 1000
CONTEXT_NAMES = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length", "n_ctx")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json")
TEMPLATE_FILE = "chat_template.jinja"
Find = Callable[[str], Path | None]
"""Where one of a model's files lies on this disk, by its name; None when the model has none of that name."""


def in_folder(folder: Path) -> Find:
    """Files of a local folder."""
    return lambda name: path if (path := folder / name).is_file() else None


def read_json(find: Find, name: str) -> dict[str, Any]:
    """A JSON file of a model; empty when it has none.

    Raises:
        ModelError: it is too large, damaged, or no object.
    """
    path = find(name)
    if path is None:
        return {}
    try:
        if (size := path.stat().st_size) > LARGEST_JSON:
            raise ModelError(f"{name} has {size:,} bytes, over {LARGEST_JSON:,}; give a model whose files are whole")
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        reason = shown(str(error), 150)
        raise ModelError(f"its {name} is damaged: {reason}; fetch or save the model again") from error
    if not isinstance(data, dict):
        raise ModelError(f"its {name} holds {type(data).__name__}, not an object; fetch or save the model again")
    return data


def number_in(config: Mapping[str, Any], *names: str) -> int | None:
    """The first of these settings that is a number, in the config or in the part of it that is about text."""
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, Mapping) else {}):
        for name in names:
            value = part.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def context_length(config: Mapping[str, Any]) -> int | None:
    """Tokens that the model's positions reach; None when its config does not say."""
    return number_in(config, *CONTEXT_NAMES)


def architecture(config: Mapping[str, Any]) -> str | None:
    """The class that the config names, else its model type."""
    named = config.get("architectures")
    first = named[0] if isinstance(named, list) and named else config.get("model_type")
    return first[:LONGEST_NAME] if isinstance(first, str) else None


def chat_template(find: Find, tokenizer: Mapping[str, Any]) -> str | None:
    """The template for chats that comes with the model."""
    path = find(TEMPLATE_FILE)
    if path is not None:
        try:
            return path.read_bytes()[: LARGEST_README + 1].decode("utf-8", "replace")
        except OSError as error:
            raise ModelError(f"cannot read its {TEMPLATE_FILE}: {error.strerror or error}; mend its rights") from error
    stored = read_json(find, "chat_template.json").get("chat_template")
    return one_of(tokenizer.get("chat_template") or stored)


def named_token(tokenizer: Mapping[str, Any], role: str) -> str | None:
    """The text of a special token (`eos_token` say), which is written as text or as an object."""
    value = tokenizer.get(role)
    if isinstance(value, Mapping):
        value = value.get("content")
    return value[:LONGEST_NAME] if isinstance(value, str) and value else None


def end_ids(generation: Mapping[str, Any], config: Mapping[str, Any]) -> list[int]:
    """Ids that end a completion: those of the generation settings, else of the config."""
    inner = config.get("text_config")
    for part in (generation, config, inner if isinstance(inner, Mapping) else {}):
        value = part.get("eos_token_id")
        found = value if isinstance(value, list) else [value]
        ids = [item for item in found if isinstance(item, int) and not isinstance(item, bool)]
        if ids:
            return ids
    return []


def added_tokens(find: Find, tokenizer: Mapping[str, Any]) -> dict[int, str]:
    """The tokens that are not part of the learned vocabulary, by their ids: the special ones are among them."""
    found = dict(_decoder(tokenizer.get("added_tokens_decoder")))
    if found:
        return found
    entries = read_json(find, "tokenizer.json").get("added_tokens")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), int) and isinstance(entry.get("content"), str):
            found[entry["id"]] = entry["content"][:LONGEST_NAME]
    return found


def _decoder(stored: Any) -> Iterator[tuple[int, str]]:
    for key, entry in stored.items() if isinstance(stored, Mapping) else ():
        content = entry.get("content") if isinstance(entry, Mapping) else None
        if str(key).isascii() and str(key).isdecimal() and len(str(key)) < 12 and isinstance(content, str):
            yield int(key), content[:LONGEST_NAME]


def parameters(folder: Path) -> int | None:
    """Numbers in the safetensors files of a folder; None when there are none or one is damaged."""
    counts = [_parameters(path) for path in sorted(folder.glob("*.safetensors"))[:MOST_SHARDS]]
    return sum(count for count in counts if count is not None) if counts and None not in counts else None


def _parameters(path: Path) -> int | None:
    """Numbers in a safetensors file, from its head: 8 bytes of length, then JSON with the shape of each tensor."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(LARGEST_HEADER, path.stat().st_size):
                return None
            header = json.loads(file.read(length))
        return int(sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def licence(find: Find) -> str | None:
    """The licence that a model's README names in its head."""
    path = find("README.md")
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_README).decode("utf-8", "replace")
    except OSError:
        return None
    head = re.match(r"---\r?\n(.*?)\r?\n---", text, re.DOTALL)
    named = re.search(r"^license:[ \t]*([^\s#\[][^\r\n#]*)", head.group(1), re.MULTILINE) if head else None
    return named.group(1).strip(" '\"")[:100] or None if named else None
