"""What a step spends its time and memory on: an exclusive stack of phases, sampled for memory by a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
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

    `at_turn` is called whenever the phase is about to change, while the old one still is the current one.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.at_turn: Callable[[], None] = lambda: None
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
        self.at_turn()
        self._settle()
        self._stack.append(name)

    def leave(self) -> None:
        self.at_turn()
        self._settle()
        if len(self._stack) > 1:
            self._stack.pop()

    def take(self, only: Collection[str] | None = None) -> dict[str, float]:
        """Seconds by phase since they were last taken; with `only` those phases, and the others go on counting."""
        self._settle()
        return {phase: self.seconds.pop(phase) for phase in list(self.seconds) if only is None or phase in only}

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
        self._on_gpu = device.type == "cuda"
        self._process = psutil.Process()
        self._samples: list[MemorySample] = []
        self._peaks: dict[str, MemorySample] = {}
        self._kept_at = 0.0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory-watch", daemon=True)

    def start(self) -> None:
        self._clock.at_turn = self._turn
        self._thread.start()

    def stop(self) -> None:
        self._clock.at_turn = lambda: None
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

    def _turn(self) -> None:
        """A phase ends: take its peak, and let the GPU's allocator begin a new one."""
        self._look(ends_phase=True)
        if self._on_gpu:
            torch.cuda.reset_peak_memory_stats(self._device)

    def _look(self, ends_phase: bool = False) -> None:
        if self.paused:
            return
        sample = self._sample(ends_phase)
        with self._lock:
            best = self._peaks.get(sample.phase)
            if best is None or _bytes(sample) > _bytes(best):
                self._peaks[sample.phase] = sample
            if sample.ts - self._kept_at >= KEEP_EVERY:
                self._samples.append(sample)
                self._kept_at = sample.ts

    def _sample(self, ends_phase: bool) -> MemorySample:
        allocated = torch.cuda.max_memory_allocated if ends_phase else torch.cuda.memory_allocated
        return MemorySample(
            ts=time.time(),
            step=self.step,
            phase=self._clock.current,
            device=str(self._device),
            allocated=allocated(self._device) if self._on_gpu else None,
            reserved=torch.cuda.memory_reserved(self._device) if self._on_gpu else None,
            rss=self._process.memory_info().rss,
        )


def _bytes(sample: MemorySample) -> int:
    return sample.allocated if sample.allocated is not None else sample.rss or 0
