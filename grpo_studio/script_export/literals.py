"""Values as Python source that anybody can read. Text only ever enters a script through here, so none can break it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from grpo_studio.errors import ConfigError
from grpo_studio.shown import shown

WIDTH = 96
"""A list or mapping that is longer is broken into lines."""


def literal(value: Any, indent: int = 0) -> str:
    """The value as source; `indent` is the depth, in spaces, of the line that it begins on.

    Raises:
        ConfigError: it is no plain data.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        items = [(literal(key) + ": ", item) for key, item in value.items()]
        return _many("{", items, "}", indent)
    if isinstance(value, list | tuple):
        return _many("[", [("", item) for item in value], "]", indent)
    raise ConfigError(f"a setting has the value {shown(value)}, which is no plain data; use text, numbers or lists")


def _many(opening: str, items: list[tuple[str, Any]], closing: str, indent: int) -> str:
    short = opening + ", ".join(name + literal(item) for name, item in items) + closing
    if len(short) + indent <= WIDTH or not items:
        return short
    inner = " " * (indent + 4)
    lines = [f"{inner}{name}{literal(item, indent + 4)}," for name, item in items]
    return "\n".join([opening, *lines, " " * indent + closing])


def _text(value: str) -> str:
    """In double quotes where that needs no other escapes: `repr` escapes all that does not show, surrogates too."""
    text = repr(value)
    return text if text[0] == '"' or '"' in text else f'"{text[1:-1]}"'
