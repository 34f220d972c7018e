"""The memory samples of a run, merged into few; each look reads only the samples that are new."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from grpo_studio.queries.steps import POINTS
from grpo_studio.store.reader import RunReader

COLUMNS = ("ts", "step", "phase", "allocated", "reserved", "rss", "device", "attempt")
IN_USE = "coalesce(allocated, rss, 0)"
_PLACE = 1 + COLUMNS.index("device")


@dataclass
class MemoryHistory:
    """The newest samples as they are, older ones merged into the one of each device with the most memory in use.

    A run's history is kept by its caller. Buckets hold `stride` ids each, a row for each device; when they are too
    many, the stride doubles and pairs are merged. With several devices there are twice as many points in all.
    """

    points: int = POINTS
    stride: int = 1
    last: int = 0
    buckets: dict[tuple[int, str], tuple[Any, ...]] = field(default_factory=dict)

    def frame(self, reader: RunReader) -> pd.DataFrame:
        """Columns ts, step, phase, allocated, reserved, rss, device, attempt, exact; one row a sample, in order.

        `exact`: between this row and the next one no sample is left out, so that phases can be told apart.
        """
        newest = reader.rows("SELECT max(id) FROM memory_sample")[0][0]
        rows: list[tuple[Any, ...]] = []
        first = 0
        if newest is not None:
            self._take_in(reader, int(newest))
            first = max(0, int(newest) - self._exact()) + 1
            rows = sorted((row[1:] for row in self.buckets.values() if row[1] < first), key=lambda row: int(row[0]))
            rows += reader.rows(
                f"SELECT id, {', '.join(COLUMNS)} FROM memory_sample WHERE id >= ? AND id <= ? ORDER BY id",
                (first, newest),
            )
        frame = pd.DataFrame([row[1:] for row in rows], columns=list(COLUMNS))
        frame["exact"] = [row[0] >= first for row in rows]
        return frame.astype({"allocated": float, "reserved": float, "rss": float, "exact": bool})

    def _total(self) -> int:
        return self.points * (1 if len({device for _, device in self.buckets}) < 2 else 2)

    def _exact(self) -> int:
        """How many of the newest samples are given as they are."""
        return self._total() // 3

    def _take_in(self, reader: RunReader, newest: int) -> None:
        while newest // self.stride + 1 > self.points - self.points // 3:
            self._double()
        # The other columns of SQLite's only max() are those of the row that has it, so a phase belongs to its peak.
        rows = reader.rows(
            f"SELECT max({IN_USE}), id, {', '.join(COLUMNS)} FROM memory_sample "
            "WHERE id > ? AND id <= ? GROUP BY id / ?, device",
            (self.last, newest, self.stride),
        )
        for row in rows:
            self._put(row)
        while len(self.buckets) > self._total() - self._exact() and self.stride <= newest:
            self._double()
        self.last = newest

    def _double(self) -> None:
        self.stride *= 2
        before, self.buckets = self.buckets, {}
        for row in before.values():
            self._put(row)

    def _put(self, row: tuple[Any, ...]) -> None:
        place = (row[1] // self.stride, str(row[1 + _PLACE]))
        known = self.buckets.get(place)
        if known is None or row[0] > known[0]:
            self.buckets[place] = row


def newest_memory_time(reader: RunReader) -> float:
    row = reader.rows("SELECT ts FROM memory_sample ORDER BY id DESC LIMIT 1")
    return float(row[0][0]) if row else 0.0
