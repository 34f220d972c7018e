"""A source as rows that are read only as they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]
_ABSENT = object()


@dataclass(frozen=True)
class RowStream:
    """Rows of a source in their order; the first is row 1.

    Args:
        rows: read as it is walked through; a damaged row raises DataError when it is reached.
        columns: names of the columns where the source says them before its rows; else empty.
        notes: what a person should know of how the source is read; it may grow while rows are read.
        share: how much of the source has been read, 0 to 1; None where that is not known.
        unreadable: columns, or fields of them by dotted names, of which values are left out because they are no text,
            each with the row of the first; it may grow as well.
    """

    rows: Iterator[Row]
    columns: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    share: Callable[[], float] | None = None
    unreadable: dict[str, int] = field(default_factory=dict)


def cell(row: Row, column: str) -> Any:
    """The value of a column, or of a field of a mapping by its dotted name (extra_info.answer); None when absent."""
    value = _find(row, column)
    return None if value is _ABSENT else value


def has_cell(row: Row, column: str) -> bool:
    """Whether a row has this column, or a mapping with this field, be its value None."""
    return _find(row, column) is not _ABSENT


def _find(row: Row, column: str) -> Any:
    if column in row or "." not in column:
        return row.get(column, _ABSENT)
    value: Any = row
    for part in column.split("."):
        if not isinstance(value, Mapping):
            return _ABSENT
        value = value.get(part, _ABSENT)
    return value
