"""A run as the Live page needs it, and what is remembered of it between two ticks."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from grpo_studio import queries
from grpo_studio.config import RunConfig
from grpo_studio.run_state import RECORDS_LOST, RunState
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader

RUN_NAME = re.compile(r"\d{8}-\d{6}-(?P<slug>.+)-[0-9a-f]{4}")


def config_of(path: Path) -> RunConfig:
    """The settings of a run's newest attempt. Each file of settings is read once: none ever changes."""
    folder = RunFolder(path)
    try:
        newest = folder.newest_config_path()
    except FileNotFoundError:  # told by whoever reads it
        newest = folder.config_path
    return _config_in(path, newest)


@lru_cache(maxsize=256)
def _config_in(path: Path, newest: Path) -> RunConfig:
    return RunFolder(path).config()


@dataclass(frozen=True)
class LiveRun:
    """A run as the page needs it: its folder, its settings, its state at this moment, whether it is in the queue."""

    folder: RunFolder
    config: RunConfig
    state: RunState
    waits: bool = False

    @property
    def name(self) -> str:
        return run_name(self.folder.run_id)

    @property
    def rewards(self) -> list[tuple[str, float]]:
        return [(reward.label, reward.weight) for reward in self.config.rewards]

    @property
    def reachable(self) -> float:
        """The greatest reward that the weights allow, for verifiers that score from 0 to 1."""
        return sum(max(weight, 0.0) for _, weight in self.rewards)

    @property
    def lowest(self) -> float:
        """The least reward that the weights allow: the colour scale of rewards begins there."""
        return sum(min(weight, 0.0) for _, weight in self.rewards)


def lost_records(reader: RunReader) -> str:
    """What of the run's record is lost, when its database was damaged; else empty."""
    found = reader.rows("SELECT message FROM event WHERE kind = ? ORDER BY id DESC LIMIT 1", (RECORDS_LOST,))
    return str(found[0][0]) if found else ""


def run_name(run_id: str) -> str:
    """The name that a person gave, out of the id."""
    match = RUN_NAME.fullmatch(run_id)
    return match["slug"] if match else run_id


@dataclass
class RunMemo:
    """Totals and memory samples of a run as read so far. Whoever reads on holds the lock."""

    totals: queries.Totals = field(default_factory=queries.Totals)
    memory: queries.MemoryHistory = field(default_factory=queries.MemoryHistory)
    memory_peaks: queries.MemoryPeaks = field(default_factory=queries.MemoryPeaks)
    lock: threading.Lock = field(default_factory=threading.Lock)


@lru_cache(maxsize=64)
def memo_of(database: Path) -> RunMemo:
    """The one memo of a run's database, shared by all pages that show it."""
    return RunMemo()
