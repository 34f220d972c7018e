"""Text from outside in a model card: it stays text, whatever Markdown, HTML or YAML would make of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from grpo_studio.shown import visible

_SPECIAL = re.compile(r"([\\`*_{}\[\]!|~$<>&@:])")
_AT_THE_START = re.compile(r"^([-+#=]|[0-9]+[.)](?=\s|$))")
"""What makes a list, a heading or a rule of a line."""


def escaped(text: str, length: int = 300) -> str:
    """One line of text in which nothing is markup: no emphasis, link, picture, formula, HTML, heading or list."""
    line = visible(" ".join(text.split()))
    line = line if len(line) <= length else f"{line[: length - 1]}…"
    line = _SPECIAL.sub(lambda found: f"&#{ord(found[1])};" if found[1] in "<>&@:" else f"\\{found[1]}", line)
    return _AT_THE_START.sub(lambda found: f"{found[1][:-1]}\\{found[1][-1]}", line)


def code(text: str) -> str:
    """One line in backticks, whatever backticks are in it; in a table's cell, too."""
    line = visible(" ".join(text.split())).replace("|", "¦")
    ticks = "`" * (_longest(r"`+", line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}" if line else ""


def block(text: str, language: str) -> str:
    """Lines in a fence that none of them can close."""
    fence = "`" * max(3, _longest(r"`+", text) + 1)
    lines = "\n".join(visible(line) for line in text.rstrip("\n").split("\n"))
    return f"{fence}{language}\n{lines}\n{fence}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def front_matter(values: dict[str, Any]) -> str:
    """The card's YAML head; values are quoted by the YAML library where they need it, and never break out of it."""
    return f"---\n{yaml.safe_dump(values, sort_keys=False, allow_unicode=False, default_flow_style=False)}---"


def _longest(pattern: str, text: str) -> int:
    return max((len(found) for found in re.findall(pattern, text)), default=0)
