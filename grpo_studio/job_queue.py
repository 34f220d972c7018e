"""The queue of a home folder: which runs wait, in order, on disk. Any process may add; only the dispatcher takes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from grpo_studio.errors import StoreError

SCHEMA = """
CREATE TABLE IF NOT EXISTS job(
    position INTEGER PRIMARY KEY AUTOINCREMENT, run_dir TEXT NOT NULL UNIQUE, enqueued REAL NOT NULL, taken REAL);
"""


@dataclass(frozen=True)
class Job:
    """A run in the queue; `taken` is when the dispatcher started it, None while it waits."""

    run_dir: Path
    taken: float | None


class JobQueue:
    """Each method is one transaction, so that several processes can use one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, run_dir: Path) -> None:
        with self._open() as db:
            db.execute("INSERT INTO job(run_dir, enqueued) VALUES (?, ?)", (str(run_dir), time.time()))

    def jobs(self) -> list[Job]:
        """All jobs in order: those taken and not yet removed, and those that wait."""
        with self._open() as db:
            rows = db.execute("SELECT run_dir, taken FROM job ORDER BY taken IS NULL, position").fetchall()
        return [Job(Path(run_dir), taken) for run_dir, taken in rows]

    def take(self, run_dir: Path) -> bool:
        """Mark a waiting job as started; False when it is gone or was taken already."""
        with self._open() as db:
            cursor = db.execute(
                "UPDATE job SET taken = ? WHERE run_dir = ? AND taken IS NULL", (time.time(), str(run_dir))
            )
        return cursor.rowcount == 1

    def remove(self, run_dir: Path, *, only_waiting: bool = False) -> bool:
        """Take a job out; with `only_waiting` not one that was started. Whether there was one."""
        condition = " AND taken IS NULL" if only_waiting else ""
        with self._open() as db:
            cursor = db.execute(f"DELETE FROM job WHERE run_dir = ?{condition}", (str(run_dir),))
        return cursor.rowcount == 1

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=30)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.executescript(SCHEMA)
                with connection:
                    yield connection
        except sqlite3.Error as error:
            raise StoreError(f"cannot use the queue {self._path}: {error}") from error
