"""Which columns mix kinds of values, such as texts and numbers, counted while rows pass by. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grpo_studio.data.rows import Row

FIRST_ROWS = 10
MOST_COLUMNS = 1000
"""Rows that each bring other keys would fill the memory; columns past these are not looked at."""
MISSING = "missing"
_KINDS = {
    bool: "true or false",
    int: "whole number",
    float: "decimal number",
    str: "text",
    list: "list",
    dict: "object",
}
_NUMBERS = {"whole number", "decimal number"}


@dataclass(frozen=True)
class Mixed:
    """A column that holds more than one kind of value.

    Args:
        column: its name; a field of an object by its dotted name (extra_info.answer).
        counts: rows of each kind, the most frequent first, "missing" (None or no such key) last.
        first_rows: numbers of the first rows of each kind but "missing".
    """

    column: str
    counts: Mapping[str, int]
    first_rows: Mapping[str, tuple[int, ...]]


class ValueKinds:
    """Counts the kinds of values of each column and of the fields of its objects."""

    def __init__(self) -> None:
        self._rows = 0
        self._counts: dict[str, dict[type, int]] = {}
        self._first: dict[tuple[str, type], list[int]] = {}

    def add(self, number: int, row: Row) -> None:
        """Count a row by its number."""
        self._rows += 1
        self._add(number, row, "")

    def _add(self, number: int, row: Row, prefix: str) -> None:
        for name, value in row.items():
            if value is None:
                continue
            kind = type(value)
            column = f"{prefix}{name}" if prefix else name
            counts = self._counts.get(column)
            if counts is None:
                if len(self._counts) >= MOST_COLUMNS:
                    continue
                counts = self._counts[column] = {}
            seen = counts.get(kind, 0)
            counts[kind] = seen + 1
            if seen < FIRST_ROWS:
                self._first.setdefault((column, kind), []).append(number)
            if kind is dict and not prefix:
                self._add(number, value, f"{name}.")

    def mixed(self) -> list[Mixed]:
        """The columns that mix kinds, in their order; whole and decimal numbers together are one kind."""
        return [self._mixed(column) for column, counts in self._counts.items() if _is_mixed(counts)]

    def _mixed(self, column: str) -> Mixed:
        by_count = sorted(self._counts[column].items(), key=lambda item: -item[1])
        counts: dict[str, int] = {}
        first: dict[str, tuple[int, ...]] = {}
        for kind, count in by_count:
            label = _label(kind)
            counts[label] = counts.get(label, 0) + count
            first[label] = tuple(sorted({*first.get(label, ()), *self._first[column, kind]})[:FIRST_ROWS])
        if missing := self._rows - sum(counts.values()):
            counts[MISSING] = missing
        return Mixed(column, counts, first)


def _is_mixed(counts: Mapping[type, int]) -> bool:
    if len(counts) < 2:
        return False
    return len({"number" if (label := _label(kind)) in _NUMBERS else label for kind in counts}) > 1


def _label(kind: type[Any]) -> str:
    return _KINDS.get(kind, kind.__name__)
