"""Looks into indices among the rows that count after a resume, and pieces of SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from grpo_studio.store.reader import RunReader


def first_and_last(reader: RunReader, table: str, where: str, parameters: Sequence[Any] = ()) -> tuple[int, int] | None:
    """The least and the greatest current step among rows of `where`, each found by one look into an index."""
    found: list[int] = []
    for span in reader.spans():
        limit = "" if span.before is None else f" AND step < {span.before}"
        for end in ("min", "max"):
            statement = f"SELECT {end}(step) FROM {table} WHERE {where} AND attempt = {span.attempt}{limit}"
            found += [int(row[0]) for row in reader.rows(statement, parameters) if row[0] is not None]
    return (min(found), max(found)) if found else None


def marks(values: Sequence[object]) -> str:
    return ", ".join("?" for _ in values)


def integers(values: Iterable[int]) -> str:
    return ", ".join(str(int(value)) for value in values)
