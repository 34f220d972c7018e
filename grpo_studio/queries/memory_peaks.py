"""The peak of each phase on each device, over the run and in the newest step that had it; and what was watched."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from grpo_studio.queries.memory import IN_USE
from grpo_studio.store.reader import RunReader

SNAPSHOT = re.compile(r"memory/snapshot-[a-z0-9-]{1,100}\.pickle")
STEP_ROWS = 4_000
"""Samples among which those of one step are looked for: about one a second and a few a phase, of every device."""


@dataclass(frozen=True)
class PhasePeak:
    """Bytes in use at most, and the steps that they are of."""

    device: str
    phase: str
    greatest: int
    greatest_step: int
    last: int
    last_step: int


@dataclass
class MemoryPeaks:
    """What was seen so far, kept by the caller between looks: each reads only the samples that are new."""

    read: int = 0
    found: dict[tuple[str, str], tuple[int, PhasePeak]] = field(default_factory=dict)

    def look(self, reader: RunReader) -> list[PhasePeak]:
        """The peaks up to now, by device."""
        newest = int(reader.rows("SELECT max(id) FROM memory_sample")[0][0] or 0)
        # The other columns of SQLite's only max() are those of the row that has it.
        greatest, latest = (
            reader.rows(
                f"SELECT device, phase, attempt, step, max({column}) FROM memory_sample WHERE id > ? AND id <= ? "
                "GROUP BY device, phase",
                (self.read, newest),
            )
            for column in (IN_USE, "id")
        )
        last = {(device, phase): (attempt, step, row) for device, phase, attempt, step, row in latest}
        for device, phase, _, step, value in greatest:
            attempt, last_step, row = last[device, phase]
            [[newer]] = reader.rows(
                f"SELECT max({IN_USE}) FROM memory_sample "
                "WHERE id > ? AND id <= ? AND device = ? AND phase = ? AND step = ? AND attempt = ?",
                (max(self.read, row - STEP_ROWS), row, device, phase, last_step, attempt),
            )
            self._put(str(device), str(phase), int(step), int(value), (int(attempt), int(last_step), int(newer)))
        self.read = newest
        return sorted((peak for _, peak in self.found.values()), key=lambda peak: peak.device)

    def _put(self, device: str, phase: str, step: int, value: int, newer: tuple[int, int, int]) -> None:
        attempt, last_step, last = newer
        known = self.found.get((device, phase))
        if known is not None:
            before, peak = known
            if peak.greatest >= value:
                step, value = peak.greatest_step, peak.greatest
            if (before, peak.last_step) == (attempt, last_step):
                last = max(last, peak.last)
        self.found[device, phase] = (attempt, PhasePeak(device, phase, value, step, last, last_step))


@dataclass(frozen=True)
class Watched:
    """What the newest attempt says that it watches; `size`: bytes of a card, or of the machine."""

    device: str = ""
    size: int = 0
    tensors: bool = False


def watched(reader: RunReader) -> Watched:
    """Nothing in a run that was recorded before it was said."""
    data = _newest(reader, "memory_watched")
    device, size, tensors = data.get("device"), data.get("bytes"), data.get("tensors")
    known = isinstance(device, str) and isinstance(size, int) and 0 < size < 1 << 60
    return Watched(str(device), int(size or 0), tensors is True) if known else Watched()


def memory_snapshot(reader: RunReader) -> str | None:
    """Where in the run's folder the newest CUDA memory snapshot was saved."""
    path = _newest(reader, "memory_snapshot").get("path")
    return path if isinstance(path, str) and SNAPSHOT.fullmatch(path) else None


def _newest(reader: RunReader, kind: str) -> dict[str, Any]:
    rows = reader.rows("SELECT data FROM event WHERE kind = ? ORDER BY id DESC LIMIT 1", (kind,))
    try:
        data = json.loads(rows[0][0]) if rows and rows[0][0] else {}
    except (ValueError, TypeError):  # damaged on the disk
        data = {}
    return data if isinstance(data, dict) else {}
