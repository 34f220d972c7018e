"""The built-in data set `builtin:arithmetic`: levels of small sums, made in place, with disjoint held-out rows."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from grpo_studio.config import BUILTIN_DATASET, DatasetSettings
from grpo_studio.errors import DataError
from grpo_studio.naming import nearest_names

Row = Mapping[str, Any]
HELD_OUT_SHARE = 5
"""Of the distinct questions, one in this many is set apart for evaluation."""
SHUFFLE_SEED = 20
"""Order of the rows; the order in which a run visits them comes from the run's own seed."""


@dataclass(frozen=True)
class Level:
    """One difficulty of the built-in data set: `pairs` lists its questions as (left, sign, right)."""

    title: str
    pairs: Callable[[], list[tuple[int, str, int]]]


LEVELS: dict[int, Level] = {
    1: Level("sums of one digit", lambda: [(a, "+", b) for a in range(10) for b in range(10)]),
    2: Level("sums up to 20 + 20", lambda: [(a, "+", b) for a in range(21) for b in range(21) if a > 9 or b > 9]),
    3: Level("differences up to 20", lambda: [(a, "-", b) for a in range(21) for b in range(a + 1)]),
    4: Level("products of one digit", lambda: [(a, "x", b) for a in range(2, 10) for b in range(2, 10)]),
    5: Level("sums of two digits", lambda: [(a, "+", b) for a in range(21, 100) for b in range(21, 100)]),
}
OPERATIONS: dict[str, Callable[[int, int], int]] = {"+": int.__add__, "-": int.__sub__, "x": int.__mul__}


def builtin_rows(settings: DatasetSettings) -> tuple[list[Row], list[Row], int]:
    """Train and held-out rows, and how many there are in all, of `builtin:arithmetic`, in a fixed mixed order.

    Which questions are held out follows from the question alone, and a + b goes with b + a: so no run ever trains on
    what another run is tested on.

    Raises:
        DataError: an unknown built-in name or level.
    """
    if settings.source != BUILTIN_DATASET:
        raise DataError(
            f"no built-in data set {settings.source!r}; {nearest_names(settings.source, [BUILTIN_DATASET])}"
        )
    questions = [(*pair, level) for level in parse_levels(settings.config) for pair in LEVELS[level].pairs()]
    shuffled = random.Random(SHUFFLE_SEED).sample(questions, len(questions))
    rows = [(_arithmetic_row(*question), _is_held_out(*question[:3])) for question in shuffled]
    held_out = [row for row, out in rows if out][: settings.held_out]
    return [row for row, out in rows if not out][: settings.limit], held_out, len(rows)


def parse_levels(text: str | None) -> list[int]:
    """Levels from text such as `2`, `1,3` or `1-3`; empty means level 1.

    Raises:
        DataError: it is no such list, or names a level that does not exist.
    """
    levels: list[int] = []
    for part in (text or "1").replace(" ", "").split(","):
        match = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", part)
        found = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
        if not found or any(level not in LEVELS for level in found):
            raise DataError(
                f"{text!r} is no level of {BUILTIN_DATASET}; give numbers from 1 to {max(LEVELS)}, such as 2 or 1-3"
            )
        levels.extend(found)
    return sorted(set(levels))


def _is_held_out(left: int, sign: str, right: int) -> bool:
    low, high = sorted((left, right)) if sign in "+x" else (left, right)
    digest = hashlib.sha256(f"{low}{sign}{high}".encode()).digest()
    return digest[0] % HELD_OUT_SHARE == 0


def _arithmetic_row(left: int, sign: str, right: int, level: int) -> Row:
    answer = OPERATIONS[sign](left, right)
    return {"prompt": f"{left} {sign} {right}", "answer": str(answer), "level": level}
