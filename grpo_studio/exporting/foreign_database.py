"""A database from outside: are its tables a run's, and its values of the kinds that every page counts on?

SQLite keeps a text in a column of numbers, and runs triggers and views that come with a file. Neither gets in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from grpo_studio.errors import StoreError
from grpo_studio.shown import shown
from grpo_studio.store.schema import MIGRATIONS, open_for_reading

KINDS = {"INTEGER": "integer", "REAL": "real", "TEXT": "text", "BLOB": "blob"}
LARGEST = 1.7e308


def require_ours(path: Path, name: str) -> None:
    """Refuse a database that this program did not make or cannot read.

    Args:
        name: how messages name it.

    Raises:
        StoreError: it is damaged, of a newer program, or holds tables or values that a run's has not.
    """
    try:
        with closing(open_for_reading(path)) as database:
            database.execute("PRAGMA trusted_schema=OFF")
            version = int(database.execute("PRAGMA user_version").fetchone()[0])
            if version > len(MIGRATIONS):
                raise StoreError(
                    f"{name} was written by a newer GRPO Studio (schema {version}, this one knows {len(MIGRATIONS)}); "
                    "update the program"
                )
            if _schema(database) != _wanted(version):
                raise StoreError(
                    f"{name} has other tables than a run's; it was changed after it was made, take another"
                )
            if (told := database.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise StoreError(f"{name} is damaged: {shown(told, 100)}; archive the run again")
            for table, condition in _wrong_values(database):
                if database.execute(f'SELECT 1 FROM "{table}" WHERE {condition} LIMIT 1').fetchone():
                    raise StoreError(f"{name} holds values in {table} that no run records; take another")
    except sqlite3.Error as error:
        raise StoreError(f"{name} cannot be read: {shown(str(error), 100)}; archive the run again") from error


def _schema(database: sqlite3.Connection) -> list[tuple[str, ...]]:
    return sorted(database.execute("SELECT type, name, tbl_name, ifnull(sql, '') FROM sqlite_master").fetchall())


def _wanted(version: int) -> list[tuple[str, ...]]:
    """The tables as the migrations up to a version make them."""
    with closing(sqlite3.connect(":memory:")) as database:
        for migration in MIGRATIONS[:version]:
            database.executescript(migration)
        return _schema(database)


def _wrong_values(database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """For each table the condition that a row meets which no run records."""
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        wrong = []
        for _, column, kind, *_ in database.execute(f'PRAGMA table_info("{table}")').fetchall():
            wrong.append(f"typeof(\"{column}\") NOT IN ('{KINDS[kind]}', 'null')")
            if kind == "REAL":
                wrong.append(f'abs("{column}") > {LARGEST}')
            if (table, column) == ("event", "data"):
                wrong.append("(data IS NOT NULL AND NOT json_valid(data))")
        yield table, " OR ".join(wrong)
