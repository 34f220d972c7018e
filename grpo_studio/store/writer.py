"""The one writer of a run.db. Not thread-safe: used by the worker's main thread alone."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grpo_studio.store.records import GroupRecord, MemorySample
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
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def metrics(self, step: int, values: Mapping[str, float | None]) -> None:
        """Record metrics of a step; what is not finite is stored as NULL."""
        now = time.time()
        self._db.executemany(
            "INSERT INTO metric(attempt, step, name, value, ts) VALUES (?, ?, ?, ?, ?)",
            [(self.attempt, step, name, finite_or_none(value), now) for name, value in values.items()],
        )

    def groups(self, step: int, groups: Iterable[GroupRecord]) -> None:
        """Record groups with their completions and scores."""
        for group in groups:
            group_id = self._insert(
                "INSERT INTO prompt_group(attempt, step, split, prompt, answer, reward_mean, reward_std) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    self.attempt,
                    step,
                    group.split,
                    storable(group.prompt),
                    None if group.answer is None else storable(group.answer),
                    finite_or_none(group.reward_mean),
                    finite_or_none(group.reward_std),
                ),
            )
            for index, item in enumerate(group.completions):
                completion_id = self._insert(
                    "INSERT INTO completion(attempt, group_id, idx, text, tokens, truncated, reward, advantage) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        self.attempt,
                        group_id,
                        index,
                        storable(item.text),
                        item.tokens,
                        int(item.truncated),
                        finite_or_none(item.reward),
                        finite_or_none(item.advantage),
                    ),
                )
                self._db.executemany(
                    "INSERT INTO score(completion_id, attempt, verifier, value, weight, seconds, reason, extracted, outcome) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        (
                            completion_id,
                            self.attempt,
                            score.verifier,
                            finite_or_none(score.value),
                            score.weight,
                            score.seconds,
                            storable(score.reason),
                            None if score.extracted is None else storable(score.extracted),
                            score.outcome,
                        )
                        for score in item.scores
                    ],
                )

    def phase_times(self, step: int, seconds: Mapping[str, float]) -> None:
        self._db.executemany(
            "INSERT INTO phase_time(attempt, step, phase, seconds) VALUES (?, ?, ?, ?)",
            [(self.attempt, step, phase, value) for phase, value in seconds.items()],
        )

    def memory_samples(self, samples: Iterable[MemorySample]) -> None:
        self._db.executemany(
            "INSERT INTO memory_sample(attempt, ts, step, phase, device, allocated, reserved, rss) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(self.attempt, s.ts, s.step, s.phase, s.device, s.allocated, s.reserved, s.rss) for s in samples],
        )

    def event(self, kind: str, message: str, level: str = "info", data: Mapping[str, Any] | None = None) -> None:
        """Record an event; outside a transaction it is visible at once."""
        text = None if data is None else json.dumps(jsonable(data), ensure_ascii=True)
        self._db.execute(
            "INSERT INTO event(attempt, ts, level, kind, message, data) VALUES (?, ?, ?, ?, ?, ?)",
            (self.attempt, time.time(), level, kind, storable(message), text),
        )

    def _insert(self, statement: str, row: tuple[Any, ...]) -> int:
        row_id = self._db.execute(statement, row).lastrowid
        if row_id is None:
            raise sqlite3.DatabaseError("the row was not inserted")
        return row_id


def finite_or_none(value: float | None) -> float | None:
    """The value as a float, or None when there is none or it is NaN or infinite."""
    return float(value) if value is not None and math.isfinite(value) else None


def storable(text: str) -> str:
    """Text that SQLite and JSON can hold: a lone surrogate becomes the replacement character."""
    return text.encode("utf-8", "replace").decode("utf-8")


def jsonable(value: Any) -> Any:
    """A copy for JSON in which no number is NaN or infinite."""
    if isinstance(value, float):
        return finite_or_none(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return value
