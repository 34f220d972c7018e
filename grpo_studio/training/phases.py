"""What a step spends its time and memory on: an exclusive stack of phases, sampled for memory by a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import torch

from grpo_studio.store.records import MemorySample

OTHER = "other"
"""Time between the named phases: data loading, clipping, logging."""
SAMPLE_EVERY = 0.1
"""Seconds between two looks at the memory, besides one at the end of each phase; a CPU's peaks between are missed."""
KEEP_EVERY = 1.0
"""Seconds between two samples that are kept, besides the greatest of each phase."""


class PhaseClock:
    """Times phases so that they add up to the wall time: entering one stops the clock of the one around it.

    `at_end` is called as each phase ends, while it still is the current one.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.at_end: Callable[[], None] = lambda: None
        self._stack: list[str] = [OTHER]
        self._since = time.perf_counter()

    @property
    def current(self) -> str:
        return self._stack[-1]

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time within to `name`."""
        self.enter(name)
        try:
            yield
        finally:
            self.leave()

    def enter(self, name: str) -> None:
        self._settle()
        self._stack.append(name)

    def leave(self) -> None:
        self.at_end()
        self._settle()
        if len(self._stack) > 1:
            self._stack.pop()

    def take(self) -> dict[str, float]:
        """Seconds by phase since the last call."""
        self._settle()
        taken, self.seconds = self.seconds, {}
        return taken

    def _settle(self) -> None:
        now = time.perf_counter()
        self.seconds[self.current] = self.seconds.get(self.current, 0.0) + now - self._since
        self._since = now


class MemoryWatch:
    """A thread that looks at the process's memory and keeps a few samples and the peak of each phase, in bytes.

    On a GPU the peaks are the allocator's own; on a CPU they are the greatest resident set seen.
    """

    def __init__(self, clock: PhaseClock, device: torch.device) -> None:
        self.step = 0
        self.paused = False
        self._clock = clock
        self._device = device
        self._process = psutil.Process()
        self._samples: list[MemorySample] = []
        self._peaks: dict[str, MemorySample] = {}
        self._kept_at = 0.0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory-watch", daemon=True)

    def start(self) -> None:
        self._clock.at_end = self._look
        self._thread.start()

    def stop(self) -> None:
        self._clock.at_end = lambda: None
        self._stop.set()
        self._thread.join(timeout=2)

    def take(self) -> tuple[list[MemorySample], dict[str, int]]:
        """Samples kept since the last call in order of time, and the peak bytes of each phase."""
        self._look()
        with self._lock:
            samples, self._samples = self._samples, []
            peaks, self._peaks = self._peaks, {}
        merged = {sample.ts: sample for sample in [*samples, *peaks.values()]}
        return [merged[ts] for ts in sorted(merged)], {phase: _bytes(sample) for phase, sample in peaks.items()}

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_EVERY):
            self._look()

    def _look(self) -> None:
        if self.paused:
            return
        sample = self._sample()
        with self._lock:
            best = self._peaks.get(sample.phase)
            if best is None or _bytes(sample) > _bytes(best):
                self._peaks[sample.phase] = sample
            if sample.ts - self._kept_at >= KEEP_EVERY:
                self._samples.append(sample)
                self._kept_at = sample.ts

    def _sample(self) -> MemorySample:
        on_gpu = self._device.type == "cuda"
        return MemorySample(
            ts=time.time(),
            step=self.step,
            phase=self._clock.current,
            device=str(self._device),
            allocated=torch.cuda.memory_allocated(self._device) if on_gpu else None,
            reserved=torch.cuda.memory_reserved(self._device) if on_gpu else None,
            rss=self._process.memory_info().rss,
        )


def _bytes(sample: MemorySample) -> int:
    return sample.allocated if sample.allocated is not None else sample.rss or 0
