"""The queue of a home folder: which runs wait, in order, on disk. Any process may add; only the dispatcher takes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from grpo_studio.errors import StoreError

MIGRATIONS: Sequence[str] = (
    "CREATE TABLE IF NOT EXISTS job("
    "position INTEGER PRIMARY KEY AUTOINCREMENT, run_dir TEXT NOT NULL UNIQUE, enqueued REAL NOT NULL, taken REAL)",
    "ALTER TABLE job ADD COLUMN devices TEXT",
)
"""Append-only: entry n brings a queue from user_version n to n + 1."""
JOBS = "SELECT run_dir, enqueued, taken, devices FROM job ORDER BY taken IS NULL, position"


@dataclass(frozen=True)
class Job:
    """A run in the queue.

    Args:
        enqueued: when it was added, for people to read; the order is the queue's own.
        taken: when the dispatcher started it, None while it waits.
        devices: those that it was started on, so that a dispatcher that restarts knows; None: not known.
        place: 1 for the next one that waits; None once it was taken.
    """

    run_dir: Path
    enqueued: float
    taken: float | None = None
    devices: tuple[str, ...] | None = None
    place: int | None = None


class JobQueue:
    """Each method is one transaction, so that several processes can use one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add_in_order(self, run_dirs: Sequence[Path]) -> None:
        """Put several runs at the end, one after the other: all of them, or none."""
        with self._open() as db:
            db.executemany(
                "INSERT OR IGNORE INTO job(run_dir, enqueued) VALUES (?, ?)",
                [(str(run_dir), time.time()) for run_dir in run_dirs],
            )

    def add(self, run_dir: Path) -> bool:
        """Put a run at the end; False when it is in the queue already."""
        with self._open() as db:
            cursor = db.execute(
                "INSERT OR IGNORE INTO job(run_dir, enqueued) VALUES (?, ?)", (str(run_dir), time.time())
            )
        return cursor.rowcount == 1

    def jobs(self) -> list[Job]:
        """All jobs in order: those taken and not yet removed, and those that wait."""
        if not self._path.exists():
            return []
        with self._open() as db:
            rows = db.execute(JOBS).fetchall()
        found, place = [], 0
        for run_dir, enqueued, taken, devices in rows:
            place += taken is None
            on = None if devices is None else tuple(devices.split(","))
            found.append(Job(Path(run_dir), enqueued, taken, on, place if taken is None else None))
        return found

    def waiting(self) -> list[Path]:
        """The runs that wait, the next one first."""
        return [job.run_dir for job in self.jobs() if job.taken is None]

    def has(self, run_dir: Path) -> bool:
        """Whether the run waits, or what served it is not done with it."""
        return any(job.run_dir == run_dir for job in self.jobs())

    def take(self, run_dir: Path, devices: Sequence[str]) -> bool:
        """Mark a waiting job as started on those devices; False when it is gone or was taken already."""
        with self._open() as db:
            cursor = db.execute(
                "UPDATE job SET taken = ?, devices = ? WHERE run_dir = ? AND taken IS NULL",
                (time.time(), ",".join(devices), str(run_dir)),
            )
        return cursor.rowcount == 1

    def give_back(self, run_dir: Path) -> bool:
        """Let a job that was taken wait again, at its place; whether there was one."""
        with self._open() as db:
            cursor = db.execute("UPDATE job SET taken = NULL, devices = NULL WHERE run_dir = ?", (str(run_dir),))
        return cursor.rowcount == 1

    def move(self, run_dir: Path, place: int) -> int:
        """Give a waiting run another place, 1 being the next; returns how many wait.

        Raises:
            ValueError: it does not wait, or there is no such place; then nothing has moved.
        """
        with self._open() as db:
            rows = db.execute("SELECT run_dir, position FROM job WHERE taken IS NULL ORDER BY position").fetchall()
            waiting = [name for name, _ in rows]
            if str(run_dir) not in waiting:
                raise ValueError("it does not wait")
            if not 1 <= place <= len(waiting):
                raise ValueError(f"there are {len(waiting)} places")
            waiting.remove(str(run_dir))
            waiting.insert(place - 1, str(run_dir))
            db.execute("UPDATE job SET position = -position WHERE taken IS NULL")  # each place is free, then given
            db.executemany(
                "UPDATE job SET position = ? WHERE run_dir = ?",
                [(position, name) for name, (_, position) in zip(waiting, rows, strict=True)],
            )
        return len(waiting)

    def remove(self, run_dir: Path, *, only_waiting: bool = False) -> bool:
        """Take a job out; with `only_waiting` not one that was started. Whether there was one."""
        condition = " AND taken IS NULL" if only_waiting else ""
        with self._open() as db:
            cursor = db.execute(f"DELETE FROM job WHERE run_dir = ?{condition}", (str(run_dir),))
        return cursor.rowcount == 1

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("BEGIN IMMEDIATE")
                _migrate(connection)
                with connection:
                    yield connection
        except sqlite3.OperationalError as error:
            raise StoreError(f"cannot use the queue {self._path}: {error}; check its folder and disk") from error
        except sqlite3.Error as error:
            raise StoreError(
                f"the queue {self._path} is damaged: {error}; move it away, and put each run that waited into a new "
                "one: resume RUN"
            ) from error


def _migrate(connection: sqlite3.Connection) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    for number in range(version, len(MIGRATIONS)):
        connection.execute(MIGRATIONS[number])
        connection.execute(f"PRAGMA user_version={number + 1}")
