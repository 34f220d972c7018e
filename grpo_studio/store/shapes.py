"""How the rows of each table look on the disk, so that a row can be told without the schema of its file."""

from __future__ import annotations

import operator
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import NoneType

from grpo_studio.store.pages import Record, Value
from grpo_studio.store.schema import migrate


@dataclass(frozen=True)
class Shape:
    """How the rows of a table look on the disk: columns in their order there, each with its type."""

    table: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    nullable: tuple[bool, ...]
    key: int | None
    """Which column is the rowid, that is stored as NULL; None for a table without rowid."""

    def fits(self, record: Record) -> bool:
        if len(record.values) != len(self.columns) or (record.rowid is None) != (self.key is None):
            return False
        return all(map(operator.contains, self._allowed, map(type, record.values)))

    @cached_property
    def _allowed(self) -> tuple[frozenset[type], ...]:
        """Types that each column may have on the disk, where a real that is a whole number is an integer."""
        allowed: dict[str, set[type]] = {"INTEGER": {int}, "REAL": {float, int}, "TEXT": {str}, "BLOB": {bytes}}
        none: dict[bool, set[type]] = {True: {NoneType}, False: set()}
        return tuple(
            frozenset({NoneType} if index == self.key else allowed[kind] | none[self.nullable[index]])
            for index, kind in enumerate(self.types)
        )

    def row(self, record: Record) -> tuple[Value, ...]:
        if self.key is None:
            return record.values
        return (*record.values[: self.key], record.rowid, *record.values[self.key + 1 :])


def shapes() -> tuple[Shape, ...]:
    """The shape of each table of run.db, at the newest schema."""
    with closing(sqlite3.connect(":memory:")) as connection:
        migrate(connection, Path(":memory:"))
        tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        return tuple(_shape(connection, name, "WITHOUT ROWID" in sql) for name, sql in tables)


def _shape(connection: sqlite3.Connection, table: str, without_rowid: bool) -> Shape:
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    if without_rowid:  # the columns of its key come first on the disk
        columns = sorted(columns, key=lambda column: column[5] or len(columns))
    key = None if without_rowid else next(index for index, column in enumerate(columns) if column[5])
    return Shape(
        table,
        columns=tuple(column[1] for column in columns),
        types=tuple(column[2] for column in columns),
        nullable=tuple(not column[3] and not column[5] for column in columns),
        key=key,
    )
