"""The built-in data set `builtin:arithmetic`: levels of small sums, made in place, with disjoint held-out rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from grpo_studio.config import BUILTIN_DATASET, DatasetSettings
from grpo_studio.data.made.params import may_be_held_out, quoted, read_params, whole_numbers
from grpo_studio.data.rows import Row
from grpo_studio.declaration import Section, setting
from grpo_studio.errors import DataError

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


class ArithmeticParams(Section):
    levels: str | None = setting(
        None,
        "Levels",
        f"Which of the levels 1 to {max(LEVELS)}, such as 2 or 1-3. Empty: those of dataset.config, else level 1.",
        main=True,
    )


def builtin_rows(settings: DatasetSettings) -> tuple[list[Row], list[Row], int]:
    """Train and held-out rows, and how many there are in all, of `builtin:arithmetic`, in a fixed mixed order.

    Which questions are held out follows from the question and `held_out_seed` alone, and a + b goes with b + a: so no
    run ever trains on what another run is tested on.

    Raises:
        DataError: an unknown level or setting.
    """
    levels = _levels(settings)
    questions = [(*pair, level) for level in levels for pair in LEVELS[level].pairs()]
    shuffled = random.Random(SHUFFLE_SEED).sample(questions, len(questions))
    rows = [(_arithmetic_row(*question), may_be_held_out(settings, _key(*question[:3]))) for question in shuffled]
    held_out = [row for row, out in rows if out][: settings.held_out]
    return [row for row, out in rows if not out][: settings.limit], held_out, len(rows)


def parse_levels(text: str | None) -> list[int]:
    """Levels from text such as `2`, `1,3` or `1-3`; empty means level 1.

    Raises:
        DataError: it is no such list, or names a level that does not exist.
    """
    levels = whole_numbers(text or "1")
    if levels is None or not set(levels) <= set(LEVELS):
        raise DataError(
            f"{quoted(text)} is no level of {BUILTIN_DATASET}; give numbers from 1 to {max(LEVELS)}, such as 2 or 1-3"
        )
    return levels


def _levels(settings: DatasetSettings) -> list[int]:
    asked = read_params(ArithmeticParams, settings).levels
    levels = parse_levels(asked or settings.config)
    if asked and settings.config and parse_levels(settings.config) != levels:
        raise DataError(
            f"dataset.params.levels is {quoted(asked)}, dataset.config {quoted(settings.config)}; set only one of them"
        )
    return levels


def _key(left: int, sign: str, right: int) -> str:
    """The same for a + b and b + a."""
    low, high = sorted((left, right)) if sign in "+x" else (left, right)
    return f"{low}{sign}{high}"


def _arithmetic_row(left: int, sign: str, right: int, level: int) -> Row:
    answer = OPERATIONS[sign](left, right)
    return {"prompt": f"{left} {sign} {right}", "answer": str(answer), "level": level}
