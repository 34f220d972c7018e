"""What a model's folder says about the model without loading it: for the line in the form's first card."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from grpo_studio.catalog import BUILTIN_MODELS, locate
from grpo_studio.errors import ModelError

LARGEST_HEADER_BYTES = 50_000_000


def model_facts(model_id: str, cache: Path) -> dict[str, Any]:
    """{"parameters", "context_length", "chat_template"} as far as the local disk knows them; nothing is fetched."""
    try:
        location = locate(model_id, cache)
    except ModelError:
        return {}  # `check` tells what is wrong
    facts: dict[str, Any] = {}
    if location.path is not None and location.ready:
        facts = _folder_facts(location.path)
    if location.kind == "builtin":
        facts["parameters"] = BUILTIN_MODELS[location.id].parameters
    return facts


def _folder_facts(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    config = _read_json(folder / "config.json")
    context = config.get("max_position_embeddings")
    if isinstance(context, int):
        facts["context_length"] = context
    in_tokenizer = "chat_template" in _read_json(folder / "tokenizer_config.json")
    facts["chat_template"] = in_tokenizer or any(folder.glob("chat_template*"))
    counts = [_parameters(path) for path in sorted(folder.glob("*.safetensors"))[:1000]]
    if counts and None not in counts:
        facts["parameters"] = sum(count for count in counts if count is not None)
    return facts


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _parameters(path: Path) -> int | None:
    """Numbers in a safetensors file, from its header: 8 bytes of length, then JSON with the shape of each tensor."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > LARGEST_HEADER_BYTES:
                return None
            header = json.loads(file.read(length))
        return sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
