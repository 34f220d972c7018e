"""CUDA's record of allocations, saved in the run's folder for pytorch.org/memory_viz: `memory.snapshot`.

While it is on, every allocation of the first steps is recorded with its stack; after them only where the memory that
is alive was allocated, which costs little and is what an out-of-memory later in the run asks for.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

STEPS = 2
"""Steps of an attempt that are recorded whole: the second is the first without the one-time work."""
ENTRIES = 100_000
"""Allocations that are kept; older ones are forgotten."""
LARGEST = 256 << 20
"""Bytes that the file may have: older allocations are left out until it fits."""
FOLDER = "memory"
TROUBLE = (OSError, RuntimeError, MemoryError, AttributeError, ValueError)
"""What saving may raise; AttributeError: functions of torch that begin with an underscore may be gone."""
_recording = False


class MemorySnapshot:
    """The snapshot of one attempt's first steps. `tell(kind, message, level=..., data=...)` records an event.

    Args:
        run: the run's folder.
        rank: of this process; each records, for an out-of-memory of its own, and the first saves the steps.
    """

    def __init__(self, run: Path, device: torch.device, rank: int, tell: Callable[..., None]) -> None:
        self._run = run
        self._device = device
        self._rank = rank
        self._tell = tell
        self._left = 0

    def begin(self) -> None:
        """Record from here on; on a CPU say that there is nothing to record."""
        if self._device.type != "cuda":
            message = f"memory.snapshot needs a GPU, and this run is on {self._device.type}: none is made"
            self._tell("memory_snapshot_failed", message, level="warning")
            return
        if self._tried(lambda: _record("all")):
            self._left = STEPS

    def step_done(self, step: int) -> None:
        """Save after the last of the first steps, and from then on record only what lives."""
        if self._left == 0:
            return
        self._left -= 1
        if self._left == 0:
            self._tried(lambda: self._save(step))
            self._tried(lambda: _record("state"))

    def _save(self, step: int) -> None:
        if self._rank != 0:
            return
        path = _write(self._run, f"step-{step}", self._rank)
        size = path.stat().st_size
        shown = path.relative_to(self._run).as_posix()
        message = f"CUDA memory snapshot of the first {STEPS} steps saved in {shown}; open it on pytorch.org/memory_viz"
        self._tell("memory_snapshot", message, data={"path": shown, "bytes": size, "step": step})

    def _tried(self, action: Callable[[], None]) -> bool:
        """A snapshot that cannot be made is told, and ends nothing."""
        try:
            action()
        except TROUBLE as error:
            self._left = 0
            message = f"no CUDA memory snapshot: {type(error).__name__}: {error}"
            self._tell("memory_snapshot_failed", message, level="warning")
            return False
        return True


def dump_snapshot(folder: Path, reason: str) -> Path | None:
    """Save what is recorded up to now as `memory/snapshot-<reason>.pickle` of the run's folder.

    Returns None, and raises nothing, when `memory.snapshot` is off or it cannot be saved: it is called while another
    error is on its way.
    """
    if not _recording:
        return None
    try:
        return _write(folder, reason, int(os.environ.get("RANK", "0")))
    except TROUBLE as error:
        print(f"no CUDA memory snapshot: {type(error).__name__}: {error}", flush=True)
        return None


def _record(what: str) -> None:
    global _recording
    torch.cuda.memory._record_memory_history(what, stacks="python", max_entries=ENTRIES)
    _recording = True


def _write(run: Path, reason: str, rank: int) -> Path:
    """Write aside, then rename: a file that is there is whole."""
    data = _pickled(torch.cuda.memory._snapshot())
    folder = run / FOLDER
    folder.mkdir(exist_ok=True)
    path = folder / f"snapshot-{reason}{f'-rank-{rank}' if rank else ''}.pickle"
    aside = path.with_suffix(".part")
    try:
        aside.write_bytes(data)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return path


def _pickled(snapshot: dict[str, Any]) -> bytes:
    """As torch's own `_dump_snapshot` writes it, with fewer of the oldest allocations where it would be too large."""
    while len(data := pickle.dumps(snapshot)) > LARGEST:
        traces = snapshot.get("device_traces", [])
        keep = max(map(len, traces), default=0) // 2
        if keep == 0:
            raise ValueError(f"it would have {len(data) >> 20:,} MiB, more than the {LARGEST >> 20:,} that are kept")
        snapshot = snapshot | {"device_traces": [trace[-keep:] for trace in traces]}
    return data
