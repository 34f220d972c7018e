"""The memory samples of a run, merged into few; each look reads only the samples that are new."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from grpo_studio.queries.steps import POINTS
from grpo_studio.store.reader import RunReader

COLUMNS = ("ts", "step", "phase", "allocated", "reserved", "rss")


@dataclass
class MemoryHistory:
    """Neighbouring samples merged into the one with the most memory in use; a run's history is kept by its caller.

    Buckets hold `stride` ids each; when they are more than `points`, the stride doubles and pairs are merged.
    """

    points: int = POINTS
    stride: int = 1
    last: int = 0
    buckets: dict[int, tuple[Any, ...]] = field(default_factory=dict)

    def frame(self, reader: RunReader) -> pd.DataFrame:
        """Columns ts, step, phase, allocated, reserved, rss, in order: each row is one real sample, the newest last."""
        newest = reader.rows(f"SELECT id, {', '.join(COLUMNS)} FROM memory_sample ORDER BY id DESC LIMIT 1")
        if newest:
            self._take_in(reader, int(newest[0][0]))
        rows = [self.buckets[place][1:] for place in sorted(self.buckets)]
        if newest and (not rows or rows[-1][0] != newest[0][0]):
            rows.append(newest[0])
        frame = pd.DataFrame([row[1:] for row in rows], columns=list(COLUMNS))
        return frame.astype({"allocated": float, "reserved": float, "rss": float})

    def _take_in(self, reader: RunReader, newest: int) -> None:
        # One bucket less than points: the newest sample may stand beside the greatest of its bucket.
        while newest // self.stride + 1 > self.points - 1:
            self._double()
        # The other columns of SQLite's only max() are those of the row that has it, so a phase belongs to its peak.
        rows = reader.rows(
            f"SELECT max(coalesce(allocated, rss, 0)), id, {', '.join(COLUMNS)} FROM memory_sample "
            "WHERE id > ? AND id <= ? GROUP BY id / ?",
            (self.last, newest, self.stride),
        )
        for row in rows:
            self._put(row[1] // self.stride, row)
        self.last = newest

    def _double(self) -> None:
        self.stride *= 2
        before, self.buckets = self.buckets, {}
        for row in before.values():
            self._put(row[1] // self.stride, row)

    def _put(self, place: int, row: tuple[Any, ...]) -> None:
        known = self.buckets.get(place)
        if known is None or row[0] > known[0]:
            self.buckets[place] = row


def newest_memory_time(reader: RunReader) -> float:
    row = reader.rows("SELECT ts FROM memory_sample ORDER BY id DESC LIMIT 1")
    return float(row[0][0]) if row else 0.0
