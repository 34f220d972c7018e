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
from grpo_studio.store.records import AttemptStart
from grpo_studio.store.salvage import is_unreadable, known_recovered, salvaged
from grpo_studio.store.schema import ATTEMPTS_SINCE, open_for_reading


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
    """The rows of an attempt that still count: those of steps before the ones that a later attempt does again."""

    attempt: int
    before: int | None


class RunReader:
    """A read-only view of one run.db; safe beside its writer. Use as a context manager.

    Of a damaged file it shows what is whole (`salvage`); its last event then says what is lost.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._recovered = False
        self._db = self._opened()
        self._spans: tuple[Span, ...] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._db.close()

    def _opened(self) -> sqlite3.Connection:
        known = known_recovered(self.path)
        if known is not None:
            self._recovered = True
            return open_for_reading(known)
        try:
            return open_for_reading(self.path)
        except StoreError as error:
            if error.__cause__ is None or not is_unreadable(error.__cause__):
                raise
            self._recovered = True
            return salvaged(self.path, error.__cause__)

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one SELECT. Of a file that turns out to be damaged all that is whole is read, from now on.

        Raises:
            StoreError: the file is locked for too long, or not even its bytes can be read.
        """
        try:
            return self._db.execute(statement, parameters).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if self._recovered or not is_unreadable(error):
                raise StoreError(f"cannot read {self.path}: {error}") from error
            self._db.close()
            self._recovered, self._spans = True, None
            self._db = salvaged(self.path, error)
        return self.rows(statement, parameters)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that is read within is of one moment, whatever the writer does meanwhile."""
        self.rows("BEGIN")
        try:
            yield
        finally:
            if self._db.in_transaction:  # not when damage was met within
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
            Event(row_id, attempt, ts, level, kind, message, _data(data))
            for row_id, attempt, ts, level, kind, message, data in found
        ]

    def last_step(self) -> int:
        """The last step that counts: of the newest attempt, or the one that it goes on after; 0 when there is none."""
        newest = self.newest_attempt()
        step = self.rows("SELECT max(step) FROM metric WHERE name = 'optim/loss' AND attempt = ?", (newest.attempt,))[
            0
        ][0]
        return newest.from_step if step is None else int(step)

    def attempts(self) -> list[AttemptStart]:
        """Where each attempt began, oldest first; the first of a run that is no branch begins at step 0."""
        began: list[AttemptStart] = []
        if self.rows("PRAGMA user_version")[0][0] >= ATTEMPTS_SINCE:
            found = self.rows("SELECT attempt, from_step, checkpoint FROM attempt ORDER BY attempt")
            began = [AttemptStart(*row) for row in found]
        return began if began and began[0].attempt == 1 else [AttemptStart(), *began]

    def newest_attempt(self) -> AttemptStart:
        return self.attempts()[-1]

    def last_metrics(self) -> dict[str, float | None]:
        """The newest value of each metric."""
        return dict(
            self.rows(
                "SELECT name, value FROM metric WHERE id IN (SELECT max(id) FROM metric GROUP BY name) ORDER BY name"
            )
        )

    def spans(self) -> tuple[Span, ...]:
        """What of each attempt still counts, oldest attempt first; looked up once for a reader."""
        if self._spans is None:
            spans: list[Span] = []
            before: int | None = None
            for began in reversed(self.attempts()):
                spans.append(Span(began.attempt, before))
                before = began.from_step + 1 if before is None else min(before, began.from_step + 1)
            self._spans = tuple(reversed(spans))
        return self._spans

    def counts(self, split: str = "train", after: int = 0) -> tuple[int, int]:
        """How many groups, and how many completions, count among those of groups with ids after `after`."""
        if after == 0:
            return self._all_counts(split)
        groups, completions = self.rows(
            "SELECT count(*), sum((SELECT count(*) FROM completion WHERE group_id = g.id)) FROM prompt_group g "
            f"WHERE id > ? AND +split = ? AND {current(self)}",
            (after, split),
        )[0]
        return int(groups), int(completions or 0)

    def _all_counts(self, split: str) -> tuple[int, int]:
        """From the indices alone: of the completions, all but those superseded or of other splits, which are few."""
        groups = self.rows(f"SELECT count(*) FROM prompt_group WHERE split = ? AND {current(self)}", (split,))[0][0]
        everything = self.rows("SELECT count(*) FROM completion")[0][0]
        others = self.rows(
            "SELECT count(*) FROM prompt_group g CROSS JOIN completion c ON c.group_id = g.id "
            "WHERE g.split < ? OR g.split > ?",
            (split, split),
        )[0][0]
        for span in self.spans():
            if span.before is not None:
                others += self.rows(
                    "SELECT count(*) FROM prompt_group g CROSS JOIN completion c ON c.group_id = g.id "
                    "WHERE g.split = ? AND g.attempt = ? AND g.step >= ?",
                    (split, span.attempt, span.before),
                )[0][0]
        return int(groups), int(everything) - int(others)


def _data(text: str | None) -> dict[str, Any] | None:
    """What an event holds beside its message; None also when it was damaged on the disk."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return None


def current(reader: RunReader, table: str = "") -> str:
    """An SQL condition that is true for rows that no later attempt has superseded. Made of integers only."""
    prefix = f"{table}." if table else ""
    spans = reader.spans()
    attempts = ", ".join(str(span.attempt) for span in spans)
    # One attempt, or a list of them, lets the indices (name | split, attempt, step) be used to their last column.
    kept = f"{prefix}attempt IN ({attempts})"
    cut = [f"NOT ({prefix}attempt = {s.attempt} AND {prefix}step >= {s.before})" for s in spans if s.before is not None]
    return " AND ".join([kept, *cut])


def newest_attempt(path: Path) -> AttemptStart:
    """Where the newest attempt of the run with this run.db begins.

    Raises:
        StoreError: the file cannot be read.
    """
    with RunReader(path) as reader:
        return reader.newest_attempt()
