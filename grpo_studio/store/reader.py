"""Read what a run recorded: plain rows, for the command line, the state of a run and `queries`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from grpo_studio.errors import StoreError
from grpo_studio.store.schema import open_for_reading


@dataclass(frozen=True)
class Event:
    id: int
    attempt: int
    ts: float
    level: str
    kind: str
    message: str
    data: dict[str, Any] | None


@dataclass(frozen=True)
class Cursor:
    """The newest row of each growing table: two equal cursors mean that nothing came in between."""

    metric: int
    group: int
    event: int
    memory: int


class RunReader:
    """A read-only view of one run.db; safe beside its writer. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = open_for_reading(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._db.close()

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one SELECT.

        Raises:
            StoreError: the file is damaged or locked for too long.
        """
        try:
            return self._db.execute(statement, parameters).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"cannot read {self.path}: {error}") from error

    def cursor(self) -> Cursor:
        return Cursor(*(self._newest(table) for table in ("metric", "prompt_group", "event", "memory_sample")))

    def _newest(self, table: str) -> int:
        newest = self.rows(f"SELECT max(id) FROM {table}")[0][0]
        return 0 if newest is None else int(newest)

    def events(self, after: int = 0, limit: int = 100_000) -> list[Event]:
        """Events in order of their making, from the one after `after`."""
        found = self.rows(
            "SELECT id, attempt, ts, level, kind, message, data FROM event WHERE id > ? ORDER BY id LIMIT ?",
            (after, limit),
        )
        return [
            Event(row_id, attempt, ts, level, kind, message, None if data is None else json.loads(data))
            for row_id, attempt, ts, level, kind, message, data in found
        ]

    def last_step(self) -> int:
        """The last step that was recorded in the newest attempt, 0 when there is none."""
        step = self.rows(
            "SELECT max(step) FROM metric WHERE name = 'optim/loss' AND attempt = (SELECT max(attempt) FROM event)"
        )[0][0]
        return 0 if step is None else int(step)

    def last_metrics(self) -> dict[str, float | None]:
        """The newest value of each metric."""
        return dict(
            self.rows(
                "SELECT name, value FROM metric WHERE id IN (SELECT max(id) FROM metric GROUP BY name) ORDER BY name"
            )
        )

    def counts(self, split: str = "train") -> tuple[int, int]:
        """How many groups, and how many completions, were recorded."""
        groups = self.rows("SELECT count(*) FROM prompt_group WHERE split = ?", (split,))[0][0]
        completions = self.rows(
            "SELECT count(*) FROM completion JOIN prompt_group g ON g.id = group_id WHERE split = ?", (split,)
        )[0][0]
        return int(groups), int(completions)
