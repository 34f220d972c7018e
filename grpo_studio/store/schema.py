"""The tables of run.db and how an older file is brought up to date.

MIGRATIONS is append-only: entry n brings a file from user_version n to n + 1.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from grpo_studio.errors import StoreError

MIGRATIONS: Sequence[str] = (
    """
    CREATE TABLE metric(
        id INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, step INTEGER NOT NULL,
        name TEXT NOT NULL, value REAL, ts REAL NOT NULL);
    CREATE INDEX metric_by_name ON metric(name, attempt, step);
    CREATE TABLE prompt_group(
        id INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, step INTEGER NOT NULL, split TEXT NOT NULL,
        prompt TEXT NOT NULL, answer TEXT, reward_mean REAL, reward_std REAL);
    CREATE INDEX prompt_group_by_step ON prompt_group(split, attempt, step);
    CREATE TABLE completion(
        id INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, group_id INTEGER NOT NULL REFERENCES prompt_group(id),
        idx INTEGER NOT NULL, text TEXT NOT NULL, tokens INTEGER NOT NULL, truncated INTEGER NOT NULL,
        reward REAL, advantage REAL);
    CREATE INDEX completion_by_group ON completion(group_id);
    CREATE TABLE score(
        completion_id INTEGER NOT NULL REFERENCES completion(id), attempt INTEGER NOT NULL, verifier TEXT NOT NULL,
        value REAL, weight REAL NOT NULL, seconds REAL, reason TEXT, extracted TEXT, outcome TEXT NOT NULL,
        PRIMARY KEY(completion_id, verifier)) WITHOUT ROWID;
    CREATE TABLE token_trace(completion_id INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, data BLOB NOT NULL);
    CREATE TABLE memory_sample(
        id INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, ts REAL NOT NULL, step INTEGER NOT NULL, phase TEXT NOT NULL,
        device TEXT NOT NULL, allocated INTEGER, reserved INTEGER, rss INTEGER);
    CREATE TABLE phase_time(
        id INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, step INTEGER NOT NULL,
        phase TEXT NOT NULL, seconds REAL NOT NULL);
    CREATE INDEX phase_time_by_step ON phase_time(attempt, step);
    CREATE TABLE ratio_histogram(
        id INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, step INTEGER NOT NULL,
        edges TEXT NOT NULL, counts TEXT NOT NULL);
    CREATE TABLE event(
        id INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, ts REAL NOT NULL, level TEXT NOT NULL, kind TEXT NOT NULL,
        message TEXT NOT NULL, data TEXT);
    """,
    # Where each later life of a run began; rows of earlier attempts past from_step are superseded from then on.
    """
    CREATE TABLE attempt(
        attempt INTEGER PRIMARY KEY, from_step INTEGER NOT NULL, checkpoint TEXT, ts REAL NOT NULL);
    """,
)
ATTEMPTS_SINCE = 2
"""The schema's version from which on a file has the table of attempts; a file made before has one attempt."""


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open or make run.db for its one writer, at the newest schema.

    Raises:
        StoreError: the file is no database, comes from a newer version, or cannot be written.
    """
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        migrate(connection, path)
    except sqlite3.Error as error:
        raise StoreError(f"cannot write to {path}: {error}") from error
    return connection


def make_plain(path: Path) -> None:
    """Leave the database as one file without a log, to be renamed, copied and read where nothing may be written."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Apply the migrations that the file lacks, each in a transaction of its own."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} was written by a newer GRPO Studio (schema {version}, this one knows {len(MIGRATIONS)}); "
            "update the program"
        )
    for number in range(version, len(MIGRATIONS)):
        connection.executescript(f"BEGIN; {MIGRATIONS[number]} PRAGMA user_version={number + 1}; COMMIT;")


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open run.db for a reader that can neither change nor create it.

    Raises:
        StoreError: there is no such file, or it is no database.
    """
    if not path.is_file():
        raise StoreError(f"{path} does not exist: the run has recorded nothing yet")
    try:
        connection = sqlite3.connect(f"file:{_uri_path(path)}?mode=ro", uri=True, timeout=10, check_same_thread=False)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter by a message that quotes a damaged schema
        raise StoreError(f"cannot read {path}: {error}") from error
    return connection


def _uri_path(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
