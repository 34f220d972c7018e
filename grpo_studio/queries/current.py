"""Which rows count after a resume: those that no later attempt has superseded, as SQL that uses every index whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from grpo_studio.store.reader import RunReader


def current(reader: RunReader, table: str = "") -> str:
    """An SQL condition that is true for rows that no later attempt has superseded. Made of integers only."""
    prefix = f"{table}." if table else ""
    spans = reader.spans()
    attempts = integers(span.attempt for span in spans)
    # One attempt, or a list of them, lets the indices (name | split, attempt, step) be used to their last column.
    kept = f"{prefix}attempt IN ({attempts})"
    cut = [f"NOT ({prefix}attempt = {s.attempt} AND {prefix}step >= {s.before})" for s in spans if s.before is not None]
    return " AND ".join([kept, *cut])


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
