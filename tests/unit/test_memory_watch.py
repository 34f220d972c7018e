"""What the memory watch keeps: on real tensors, and on cards where only torch's functions of the allocator stand in."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from grpo_studio.store.records import MemorySample
from grpo_studio.training import memory_watch as watching
from grpo_studio.training.device_memory import device_name
from grpo_studio.training.memory_watch import MemoryWatch, Taken, merged
from grpo_studio.training.other_processes import (
    FAILURES,
    CardUse,
    OtherProcesses,
    ask_program,
    other_processes,
    share_of_others,
)
from grpo_studio.training.phases import PhaseClock
from grpo_studio.training.tensor_bytes import TensorBytes

CPU = torch.device("cpu")
MIB = 1 << 20


@pytest.fixture(autouse=True)
def seconds(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """The thread sleeps, and the time is set by hand: a look comes only where a phase ends."""
    now = types.SimpleNamespace(time=lambda: now.at, monotonic=lambda: now.at, at=1000.0)
    monkeypatch.setattr(watching, "SAMPLE_EVERY", 3600.0)
    monkeypatch.setattr(watching, "time", now)

    def pass_(by: float) -> None:
        now.at += by

    return pass_


@pytest.fixture
def started() -> Iterator[Callable[[MemoryWatch], MemoryWatch]]:
    """Starts a watch, and stops it after the test."""
    watches: list[MemoryWatch] = []

    def start(watch: MemoryWatch, *held: Any) -> MemoryWatch:
        watches.append(watch)
        watch.start(*held)
        return watch

    yield start
    for watch in watches:
        watch.stop()


def test_tensor_bytes_are_the_exact_peak_of_each_phase(started: Any) -> None:
    clock, weights = PhaseClock(), torch.nn.Linear(1024, 256, bias=False)
    watch = started(MemoryWatch(clock, CPU, tensors=TensorBytes()), weights)
    with clock.phase("loss"):
        torch.zeros(4 * MIB, dtype=torch.uint8).sum()
    with clock.phase("optimizer"):
        kept = torch.zeros(MIB, dtype=torch.uint8)
    peaks = watch.take().peaks
    assert peaks["loss"] - 5 * MIB in range(4096)  # the weights are 1 MiB; a sum has a few bytes
    assert peaks["optimizer"] - 2 * MIB in range(4096)
    del kept
    with clock.phase("optimizer"):
        pass
    samples, peaks = (taken := watch.take()).samples, taken.peaks
    assert peaks == {"other": 2 * MIB, "optimizer": MIB}, "a peak outlived its step"
    assert {sample.reserved for sample in samples} == {None}
    assert all((sample.rss or 0) > 10 * MIB for sample in samples)


def test_nothing_is_counted_once_the_watch_has_stopped() -> None:
    tensors = TensorBytes()
    watch = MemoryWatch(PhaseClock(), CPU, tensors=tensors)
    watch.start()
    watch.stop()
    before = tensors.current
    later = torch.zeros(MIB)
    assert tensors.current == before
    assert later.numel() == MIB


def test_long_phases_and_each_phase_s_peak_are_kept(started: Any, seconds: Callable[[float], None]) -> None:
    clock = PhaseClock()
    watch = started(MemoryWatch(clock, CPU, tensors=TensorBytes()))
    watch.step = 7
    for _ in range(3):
        with clock.phase("rollout"):
            seconds(0.5)
        for _ in range(20):  # micro-batches
            with clock.phase("loss"):
                seconds(0.01)
    samples = watch.take().samples
    assert [sample.ts for sample in samples] == sorted(sample.ts for sample in samples)
    assert sum(sample.phase == "rollout" for sample in samples) == 3
    assert 1 <= sum(sample.phase == "loss" for sample in samples) <= 3
    assert {sample.step for sample in samples} == {7}
    watch.step_done(7)
    with clock.phase("loss"):
        seconds(0.5)
    assert [sample.step for sample in watch.take().samples if sample.phase == "loss"] == [8]


def test_a_watch_that_is_paused_sees_nothing(started: Any, seconds: Callable[[float], None]) -> None:
    clock = PhaseClock()
    watch = started(MemoryWatch(clock, CPU))
    watch.paused = True
    with clock.phase("loss"):
        seconds(5)
    assert watch.take() == Taken([], {}, None)


class Cards:
    """Stands in for torch's functions of CUDA's allocator: what is allocated on each card, with a greatest value."""

    def __init__(self, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = [0] * count
        self.most = [0] * count
        functions = {
            "device_count": lambda: count,
            "current_device": lambda: 0,
            "memory_allocated": lambda card: self.now[card],
            "max_memory_allocated": lambda card: self.most[card],
            "memory_reserved": lambda card: 2 * self.now[card],
            "max_memory_reserved": lambda card: 2 * self.most[card],
            "reset_peak_memory_stats": self.reset,
        }
        for name, function in functions.items():
            monkeypatch.setattr(torch.cuda, name, function)

    def reset(self, card: int) -> None:
        self.most[card] = self.now[card]

    def use(self, card: int, size: int) -> None:
        self.now[card] = size
        self.most[card] = max(size, self.most[card])


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> Cards:
    return Cards(3, monkeypatch)


def test_a_card_s_peak_begins_anew_with_each_phase(started: Any, cards: Cards) -> None:
    clock = PhaseClock()
    watch = started(MemoryWatch(clock, torch.device("cuda", 1), name="cuda:1"))
    cards.use(1, 100)
    with clock.phase("loss"):
        cards.use(1, 900)
        cards.use(1, 200)
    with clock.phase("optimizer"):
        cards.use(1, 300)
    taken = watch.take()
    assert taken.peaks == {"other": 300, "loss": 900, "optimizer": 300}
    [loss] = [sample for sample in taken.samples if sample.phase == "loss"]
    assert (loss.device, loss.allocated, loss.reserved) == ("cuda:1", 900, 1800)
    cards.use(1, 10)
    watch.take()
    assert watch.take().peaks == {"other": 10}, "the phase that goes on kept the peak of the step before"


def test_another_card_that_the_process_comes_to_use_is_watched_from_the_next_step_on(
    started: Any, cards: Cards
) -> None:
    clock = PhaseClock()
    watch = started(MemoryWatch(clock, torch.device("cuda", 0), name="cuda:0"))
    cards.use(0, 50)
    with clock.phase("loss"):
        cards.use(2, 700)
    assert {sample.device for sample in watch.take().samples} == {"cuda:0"}
    with clock.phase("loss"):
        cards.use(2, 800)
    taken = watch.take()
    assert {sample.device for sample in taken.samples} == {"cuda:0", "cuda:2"}
    assert taken.peaks["loss"] == 800, "the peak of a phase is the greatest over devices"


@pytest.mark.parametrize(
    ("device", "rank", "world", "machine", "name"),
    [
        ("cpu", 0, 1, 0, "cpu"),
        ("cpu", 1, 2, 0, "cpu rank 1"),
        ("cuda:1", 1, 2, 0, "cuda:1"),
        ("cuda", 0, 1, 0, "cuda:0"),
        ("cuda:1", 9, 16, 1, "cuda:1 machine 2"),
    ],
)
def test_no_two_devices_of_a_run_have_one_name(device: str, rank: int, world: int, machine: int, name: str) -> None:
    assert device_name(torch.device(device), rank, world, machine) == name


def test_the_processes_samples_are_put_together_in_order_of_time() -> None:
    def sample(ts: float, rank: int) -> MemorySample:
        return MemorySample(ts, 1, "loss", f"cpu rank {rank}", None, None, rank)

    first = Taken([sample(1, 0), sample(3, 0)], {"loss": 5, "save": 1}, None)
    second = Taken([sample(2, 1)], {"loss": 7}, 40)
    together = merged([first, second, Taken()])
    assert [one.ts for one in together.samples] == [1, 2, 3]
    assert together.peaks == {"loss": 7, "save": 1}
    assert together.others == 40
    assert merged([Taken(), Taken()]) == Taken()


# --- other processes on the card ---


@pytest.mark.parametrize(
    ("use", "share"),
    [
        (CardUse(900, {7: 300, 8: 100, 9: 200}), 300),
        (CardUse(900, {7: 300}), 0),
        (CardUse(900, {7: 300, 8: None}), 500),
        (CardUse(900, {7: None, 8: 100}), 100),
        (CardUse(900, {8: 100}), 500),
        (CardUse(900), 500),
        (CardUse(100), 0),
    ],
    ids=["listed", "alone", "one untold", "own untold", "ids of another namespace", "no list", "less than reserved"],
)
def test_the_share_of_others(use: CardUse, share: int) -> None:
    assert share_of_others(use, pid=7, reserved=400) == share


class Program:
    """An nvidia-smi that is a script of these tests; it answers with what is written for each kind of query."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "nvidia-smi"

    def says(self, cards: str, processes: str, first: str = "") -> None:
        answers = f"case $1 in *compute-apps*) printf '%s' '{processes}';; *) printf '%s' '{cards}';; esac"
        self.path.write_text(f"#!/bin/sh\n{first}\n{answers}\n")
        self.path.chmod(0o755)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    return Program(tmp_path)


def test_nvidia_smi_is_read_for_this_process_s_cards_only(program: Program) -> None:
    program.says(
        "GPU-a, 900\nGPU-b, 5000\nodd line\nGPU-c, [N/A]\n",
        f"GPU-a, {os.getpid()}, 300\nGPU-a, 8, [N/A]\nGPU-b, 8, 5000\nGPU-a, what, 3\n\n",
    )
    found = ask_program(str(program.path), ["GPU-a", "GPU-c"])
    assert found == {"GPU-a": CardUse(900 * MIB, {os.getpid(): 300 * MIB, 8: None})}


def test_the_most_that_others_held_since_the_last_step(program: Program) -> None:
    program.says("GPU-a, 900", "")
    others = other_processes()
    assert others.source == "nvidia-smi"
    assert others.take() is None
    others.look(100.0, {"GPU-a": 100 * MIB})
    program.says("GPU-a, 1900", "")
    others.look(101.0, {"GPU-a": 100 * MIB})  # too early: it is not asked
    assert others.take() == 800 * MIB
    others.look(200.0, {"GPU-a": 100 * MIB})
    program.says("GPU-a, 400", "")
    others.look(300.0, {"GPU-a": 100 * MIB})
    assert others.take() == 1800 * MIB
    assert others.take() is None


@pytest.mark.parametrize(
    "first", ["exit 9", "exec sleep 30", "printf '\\377\\376'; exit 0"], ids=["fails", "hangs", "bytes"]
)
def test_a_driver_that_does_not_answer_is_left_alone(
    program: Program, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    monkeypatch.setattr("grpo_studio.training.other_processes.ANSWERS_WITHIN", 0.2)
    program.says("GPU-a, 900", "", first)
    others = other_processes()
    for turn in range(FAILURES):
        others.look(100.0 * turn, {"GPU-a": 0})
    program.says("GPU-a, 900", "")
    others.look(1e6, {"GPU-a": 0})
    assert others.take() is None


def test_without_nvml_and_nvidia_smi_nobody_is_asked(program: Program) -> None:
    others = other_processes()
    others.look(0.0, {"GPU-a": 0})
    assert (others.source, others.take()) == (None, None)


class Nvml(types.ModuleType):
    """Stands in for the module pynvml, which is the boundary to the driver."""

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.broken = False

    def nvmlInit(self) -> None:
        pass

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if self.broken:
            raise self.NVMLError("GPU is lost")
        return uuid

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        return types.SimpleNamespace(used=1000)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:
        own = types.SimpleNamespace(pid=os.getpid(), usedGpuMemory=(1 << 64) - 1)
        return [own, types.SimpleNamespace(pid=1, usedGpuMemory=300)]


def test_nvml_is_asked_where_it_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    others = other_processes()
    assert others.source == "nvml"
    others.look(0.0, {"GPU-a": 100})
    assert others.take() == 300
    nvml.broken = True
    for turn in range(1, 1 + FAILURES):
        others.look(1000.0 * turn, {"GPU-a": 100})
    assert others.take() is None


def test_the_thread_asks_for_the_card_by_its_own_name(
    started: Any, cards: Cards, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def answer(uuids: Any) -> dict[str, CardUse]:
        asked.append(list(uuids))
        return {"GPU-a": CardUse(1000)}

    monkeypatch.setattr(watching, "SAMPLE_EVERY", 0.001)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda card: types.SimpleNamespace(uuid="a"))
    others = OtherProcesses("nvml", answer, every=0.0)
    cards.use(0, 200)
    watch = started(MemoryWatch(PhaseClock(), torch.device("cuda", 0), others=others))
    while not asked:
        pass
    watch.stop()
    assert asked[0] == ["GPU-a"]
    assert watch.take().others == 600
