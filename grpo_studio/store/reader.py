"""Read what a run recorded: plain rows, for the command line, the state of a run and `queries`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


@dataclass(frozen=True)
class Span:
    """The rows of an attempt that still count: those of steps before the first step of any later attempt."""

    attempt: int
    before: int | None


class RunReader:
    """A read-only view of one run.db; safe beside its writer. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = open_for_reading(path)
        self._spans: tuple[Span, ...] | None = None

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

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that is read within is of one moment, whatever the writer does meanwhile."""
        self.rows("BEGIN")
        try:
            yield
        finally:
            self.rows("COMMIT")

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

    def spans(self) -> tuple[Span, ...]:
        """What of each attempt still counts, oldest attempt first; looked up once for a reader.

        Every look goes to the end of an index or table, however long the run is.
        """
        if self._spans is None:
            tables = ("metric", "prompt_group", "phase_time")
            newest = [self.rows(f"SELECT attempt FROM {table} ORDER BY id DESC LIMIT 1") for table in tables]
            last = max((int(rows[0][0]) for rows in newest if rows), default=1)
            spans: list[Span] = []
            before: int | None = None
            for attempt in range(last, 0, -1):
                spans.append(Span(attempt, before))
                start = self.rows("SELECT min(step) FROM metric WHERE name = 'optim/loss' AND attempt = ?", (attempt,))[
                    0
                ][0]
                if start is not None:
                    before = int(start) if before is None else min(before, int(start))
            self._spans = tuple(reversed(spans))
        return self._spans

    def counts(self, split: str = "train", after: int = 0) -> tuple[int, int]:
        """How many groups, and how many completions, were recorded in groups of ids after `after`."""
        if after == 0:
            return self._all_counts(split)
        groups, completions = self.rows(
            "SELECT count(*), sum((SELECT count(*) FROM completion WHERE group_id = g.id)) FROM prompt_group g "
            "WHERE id > ? AND +split = ?",
            (after, split),
        )[0]
        return int(groups), int(completions or 0)

    def _all_counts(self, split: str) -> tuple[int, int]:
        """From the indices alone: of the completions, all but those of other splits, which are few."""
        groups = self.rows("SELECT count(*) FROM prompt_group WHERE split = ?", (split,))[0][0]
        everything = self.rows("SELECT count(*) FROM completion")[0][0]
        others = self.rows(
            "SELECT count(*) FROM prompt_group g CROSS JOIN completion c ON c.group_id = g.id "
            "WHERE g.split < ? OR g.split > ?",
            (split, split),
        )[0][0]
        return int(groups), int(everything) - int(others)
