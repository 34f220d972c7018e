"""The one writer of a run.db. Not thread-safe: used by the worker's main thread alone."""

from __future__ import annotations

import functools
import json
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, overload

from grpo_studio.errors import StoreError
from grpo_studio.store.records import CompletionRecord, GroupRecord, MemorySample
from grpo_studio.store.schema import open_for_writing


class RunWriter:
    """Appends rows of one attempt. What is written inside `step()` appears to readers at once, or not at all."""

    def __init__(self, path: Path, attempt: int) -> None:
        self.attempt = attempt
        self._db = open_for_writing(path)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All rows written within are committed together; on an error none is."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk has rolled it back already
                self._db.execute("ROLLBACK")
            raise

    def metrics(self, step: int, values: Mapping[str, float | None]) -> None:
        """Record metrics of a step; what is not finite is stored as NULL."""
        now = time.time()
        rows = [(step, name, finite_or_none(value), now) for name, value in values.items()]
        self._insert("metric", ("step", "name", "value", "ts"), rows)

    def groups(self, step: int, groups: Iterable[GroupRecord]) -> None:
        """Record groups with their completions and scores."""
        for group in groups:
            group_id = self._insert_one(
                "prompt_group",
                step=step,
                split=group.split,
                prompt=storable(group.prompt),
                answer=storable(group.answer),
                reward_mean=finite_or_none(group.reward_mean),
                reward_std=finite_or_none(group.reward_std),
            )
            for index, completion in enumerate(group.completions):
                self._completion(group_id, index, completion)

    def _completion(self, group_id: int, index: int, completion: CompletionRecord) -> None:
        completion_id = self._insert_one(
            "completion",
            group_id=group_id,
            idx=index,
            text=storable(completion.text),
            tokens=completion.tokens,
            truncated=int(completion.truncated),
            reward=finite_or_none(completion.reward),
            advantage=finite_or_none(completion.advantage),
        )
        columns = ("completion_id", "verifier", "value", "weight", "seconds", "reason", "extracted", "outcome")
        rows = [
            (
                completion_id,
                score.verifier,
                finite_or_none(score.value),
                score.weight,
                score.seconds,
                storable(score.reason),
                storable(score.extracted),
                score.outcome,
            )
            for score in completion.scores
        ]
        self._insert("score", columns, rows)

    def phase_times(self, step: int, seconds: Mapping[str, float]) -> None:
        """Record the seconds that a step spent in each phase."""
        self._insert("phase_time", ("step", "phase", "seconds"), [(step, *item) for item in seconds.items()])

    def memory_samples(self, samples: Iterable[MemorySample]) -> None:
        """Record looks at the memory."""
        columns = tuple(field.name for field in fields(MemorySample))
        self._insert("memory_sample", columns, [astuple(sample) for sample in samples])

    def event(self, kind: str, message: str, level: str = "info", data: Mapping[str, Any] | None = None) -> None:
        """Record an event; outside a transaction it is visible at once."""
        text = None if data is None else json.dumps(jsonable(data), ensure_ascii=True)
        self._insert_one("event", ts=time.time(), level=level, kind=kind, message=storable(message), data=text)

    def attempt_began(
        self, from_step: int, checkpoint: str, message: str, data: Mapping[str, Any] | None = None
    ) -> None:
        """Begin this writer's attempt after `from_step` steps: earlier rows past that step are superseded from now on.

        Raises:
            StoreError: somebody else has begun it already.
        """
        try:
            with self.transaction():
                self._insert_one("attempt", from_step=from_step, checkpoint=checkpoint, ts=time.time())
                self.event("attempt_began", message, data=data)
        except sqlite3.IntegrityError as error:
            raise StoreError(
                f"attempt {self.attempt} of this run has begun already; look at its state first"
            ) from error

    def _insert(self, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        self._db.executemany(_insert_statement(table, tuple(columns)), [(self.attempt, *row) for row in rows])

    def _insert_one(self, table: str, **values: Any) -> int:
        """Insert one row; returns its id."""
        row_id = self._db.execute(_insert_statement(table, tuple(values)), (self.attempt, *values.values())).lastrowid
        if row_id is None:
            raise sqlite3.DatabaseError("the row was not inserted")
        return row_id


@functools.cache
def _insert_statement(table: str, columns: tuple[str, ...]) -> str:
    places = ", ".join("?" * (len(columns) + 1))
    return f"INSERT INTO {table}(attempt, {', '.join(columns)}) VALUES ({places})"


def finite_or_none(value: float | None) -> float | None:
    """The value as a float, or None when there is none or it is NaN or infinite."""
    return float(value) if value is not None and math.isfinite(value) else None


@overload
def storable(text: str) -> str: ...
@overload
def storable(text: None) -> None: ...
def storable(text: str | None) -> str | None:
    """Text that SQLite and JSON can hold: a lone surrogate becomes a question mark."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")


def jsonable(value: Any) -> Any:
    """A copy for JSON in which no number is NaN or infinite."""
    if isinstance(value, float):
        return finite_or_none(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return value
