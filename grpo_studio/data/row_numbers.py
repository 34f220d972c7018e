"""Numbers of rows as they are told to a person. Pure."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 10
"""So many numbers are told of each finding."""


def listed_rows(numbers: Sequence[int], count: int | None = None, shown: int = 5) -> str:
    """`row 5`, `rows 5, 9`, or the first few and `...` when there are more; `count` is how many there are in all."""
    count = len(numbers) if count is None else count
    told = ", ".join(str(number) for number in numbers[:shown])
    return f"row{'s' * (count > 1)} {told}{', ...' * (count > min(shown, len(numbers)))}"
