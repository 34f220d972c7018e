"""Watches what this process has in use on each of its devices, phase by phase; in bytes.

On a GPU the peaks are the allocator's own, on a CPU the greatest resident set seen or, with `memory.track_tensors`, the
exact peak of the bytes of all tensors. Each process watches itself; `gathered` brings their samples together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import torch
from accelerate import PartialState
from accelerate.utils import gather_object

from grpo_studio.config import RunConfig
from grpo_studio.store.records import MemorySample
from grpo_studio.training.device_memory import (
    CardMemory,
    CpuMemory,
    DeviceMemory,
    Use,
    cards_in_use,
    device_name,
    size_of,
)
from grpo_studio.training.memory_snapshot import MemorySnapshot
from grpo_studio.training.other_processes import OtherProcesses, card_uuid, other_processes
from grpo_studio.training.phases import PhaseClock
from grpo_studio.training.tensor_bytes import TensorBytes

SAMPLE_EVERY = 0.1
"""Seconds between two looks at the memory, besides one at the end of each phase; a CPU's peaks between are missed."""
KEEP_EVERY = 1.0
"""Seconds between two samples that are kept, besides the greatest of each phase and the last of longer ones."""
LONG_PHASE = 0.25
"""Seconds from which on the end of a phase is kept, so that a chart knows where its band ends."""

Tell = Callable[..., None]
"""Records an event: (kind, message, level=..., data=...)."""


@dataclass(frozen=True)
class Taken:
    """What was seen since the last time: samples in order of time, peak bytes by phase (the greatest over devices).

    `others`: the most that other processes held on a card; None where nobody could be asked.
    """

    samples: list[MemorySample] = field(default_factory=list)
    peaks: dict[str, int] = field(default_factory=dict)
    others: int | None = None


class MemoryWatch:
    """A thread that looks at the memory and keeps a few samples and the peak of each phase on each device.

    Args:
        name: of the device in the samples; None: torch's.
        tensors: counts the bytes of all tensors on a CPU; it is entered by `start` and left by `stop`.
        others: asks what other processes hold on the cards.
        snapshot: CUDA's record of the first steps.
    """

    def __init__(
        self,
        clock: PhaseClock,
        device: torch.device,
        *,
        name: str | None = None,
        tensors: TensorBytes | None = None,
        others: OtherProcesses | None = None,
        snapshot: MemorySnapshot | None = None,
    ) -> None:
        self.step = 0
        self.paused = False
        self._clock = clock
        self._tensors = tensors
        self._others = others
        self._snapshot = snapshot
        self._devices = [_watched(device, name or str(device), tensors)]
        self._uuids: dict[int, str] = {}
        self._process = psutil.Process()
        self._samples: list[MemorySample] = []
        self._peaks: dict[tuple[str, str], MemorySample] = {}
        self._kept_at = 0.0
        self._turned_at = 0.0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory-watch", daemon=True)

    def start(self, *held: Any) -> None:
        """Begin to watch. `held`: modules and tensors that are there already, for the count of tensors."""
        if self._snapshot is not None:
            self._snapshot.begin()
        if self._tensors is not None:
            self._tensors.track(*held)
            self._tensors.__enter__()
        self._turned_at = time.time()
        self._clock.at_turn = self._turn
        self._thread.start()

    def stop(self) -> None:
        self._clock.at_turn = lambda: None
        self._stop.set()
        self._thread.join(timeout=2)
        if self._tensors is not None:
            self._tensors.__exit__(None, None, None)

    def step_done(self, step: int) -> None:
        """The optimizer step is over; what is seen from now on belongs to the next."""
        if self._snapshot is not None:
            self._snapshot.step_done(step)
        self.step = step + 1

    def take(self) -> Taken:
        """What this process saw since the last call; a phase that goes on begins a new peak."""
        self._turn()
        self._look_for_cards()
        with self._lock:
            samples, self._samples = self._samples, []
            peaks, self._peaks = self._peaks, {}
        found = {(sample.ts, sample.device, sample.phase): sample for sample in [*samples, *peaks.values()]}
        kept = [found[key] for key in sorted(found)]
        return Taken(kept, greatest_by_phase(peaks.values()), None if self._others is None else self._others.take())

    def _look_for_cards(self) -> None:
        own = self._devices[0]
        if not isinstance(own, CardMemory):
            return
        with self._lock:
            known = {device.index for device in self._devices if isinstance(device, CardMemory)}
            new = [index for index in cards_in_use(own.index) if index not in known]
            self._devices += [CardMemory(index, f"cuda:{index}") for index in new]

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_EVERY):
            self._look()
            if self._others is not None and not self.paused:
                self._others.look(time.monotonic(), self._reserved())

    def _reserved(self) -> Mapping[str, int]:
        """Bytes that this process's allocator holds, by the card's uuid."""
        cards = [device for device in self._devices if isinstance(device, CardMemory)]
        for card in cards:
            if card.index not in self._uuids:
                self._uuids[card.index] = card_uuid(card.index)
        return {self._uuids[card.index]: card.now().reserved or 0 for card in cards}

    def _turn(self) -> None:
        """A phase ends: take its peak, and let the counts begin a new one."""
        self._look(ends_phase=True)
        for device in self._devices:
            device.reset()

    def _look(self, ends_phase: bool = False) -> None:
        if self.paused:
            return
        now, rss, phase, step = time.time(), self._process.memory_info().rss, self._clock.current, self.step
        with self._lock:
            keep = now - self._kept_at >= KEEP_EVERY or (ends_phase and now - self._turned_at >= LONG_PHASE)
            for device in self._devices:
                use = device.peak() if ends_phase else device.now()
                self._see(_sample(now, step, phase, device.name, use, rss), keep)
            if keep:
                self._kept_at = now
            if ends_phase:
                self._turned_at = now

    def _see(self, sample: MemorySample, keep: bool) -> None:
        best = self._peaks.get((sample.device, sample.phase))
        if best is None or in_use(sample) >= in_use(best):  # of equals the last, which tells when the phase ended
            self._peaks[sample.device, sample.phase] = sample
        if keep:
            self._samples.append(sample)


def watch_memory(config: RunConfig, run: Path, clock: PhaseClock, device: torch.device, tell: Tell) -> MemoryWatch:
    """The watch that a run's settings ask for; says by an event what it watches. `run` is the run's folder."""
    state = PartialState()
    machine = state.process_index // config.scale.processes
    name = device_name(device, state.process_index, state.num_processes, machine)
    on_card = device.type == "cuda"
    others = other_processes() if on_card else None
    tensors = None if on_card else _tensors_of(config, tell)
    snapshot = MemorySnapshot(run, device, state.process_index, tell) if config.memory.snapshot else None
    size = size_of(device)
    message = f"memory is watched on {name}, {size / 1e9:.0f} GB"
    source = None if others is None else others.source
    data = {"device": name, "bytes": size, "others": source, "tensors": tensors is not None}
    tell("memory_watched", message, data=data)
    return MemoryWatch(clock, device, name=name, tensors=tensors, others=others, snapshot=snapshot)


def gathered(taken: Taken) -> Taken:
    """What all processes saw, on each of them; every process has to call it at the same place."""
    if PartialState().num_processes == 1:
        return taken
    return merged(gather_object([taken]))


def merged(ranks: Sequence[Taken]) -> Taken:
    """As if one process had seen it all."""
    samples = sorted((sample for one in ranks for sample in one.samples), key=lambda sample: sample.ts)
    peaks: dict[str, int] = {}
    for one in ranks:
        for phase, value in one.peaks.items():
            peaks[phase] = max(value, peaks.get(phase, 0))
    others = [one.others for one in ranks if one.others is not None]
    return Taken(samples, peaks, max(others, default=None))


def in_use(sample: MemorySample) -> int:
    """The bytes that count: what is allocated, or the resident size where nothing counts that."""
    return sample.allocated if sample.allocated is not None else sample.rss or 0


def greatest_by_phase(samples: Iterable[MemorySample]) -> dict[str, int]:
    """Bytes in use at most, over all devices."""
    peaks: dict[str, int] = {}
    for sample in samples:
        peaks[sample.phase] = max(in_use(sample), peaks.get(sample.phase, 0))
    return peaks


def _watched(device: torch.device, name: str, tensors: TensorBytes | None) -> DeviceMemory:
    if device.type == "cuda":
        return CardMemory(torch.cuda.current_device() if device.index is None else device.index, name)
    return CpuMemory(name, tensors)


def _sample(ts: float, step: int, phase: str, device: str, use: Use, rss: int) -> MemorySample:
    return MemorySample(ts, step, phase, device, use.allocated, use.reserved, rss)


def _tensors_of(config: RunConfig, tell: Tell) -> TensorBytes | None:
    if not config.memory.track_tensors:
        return None
    if config.rollout.engine == "vllm_colocate":
        message = "memory.track_tensors is off: the vLLM engine would run its kernels in this process's count"
        tell("tensors_not_tracked", message, level="warning")
        return None
    tell("tensors_tracked", "the bytes of all tensors are counted by phase: each step takes longer")
    return TensorBytes()
