"""CUDA's record of allocations: when it is made, how large it may become; torch's functions of it stand in."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from grpo_studio.training import memory_snapshot
from grpo_studio.training.memory_snapshot import MemorySnapshot, dump_snapshot

CARD, CPU = torch.device("cuda", 0), torch.device("cpu")
Events = list[tuple[str, str, str, Any]]


class Allocator:
    """Stands in for the two functions of torch.cuda.memory that only a GPU has."""

    def __init__(self) -> None:
        self.recorded: list[str] = []
        self.trace = [{"action": "alloc", "addr": place, "frames": [f"file-{place}.py"]} for place in range(1000)]

    def record(self, what: str, *, stacks: str, max_entries: int) -> None:
        self.recorded.append(what)

    def snapshot(self) -> dict[str, Any]:
        return {"segments": [{"total_size": 1}], "device_traces": [self.trace]}


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> Allocator:
    allocator = Allocator()
    monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", allocator.record)
    monkeypatch.setattr(torch.cuda.memory, "_snapshot", allocator.snapshot)
    monkeypatch.setattr(memory_snapshot, "_recording", False)
    return allocator


@pytest.fixture
def events() -> Events:
    return []


@pytest.fixture
def made(tmp_path: Path, events: Events) -> Callable[..., MemorySnapshot]:
    def tell(kind: str, message: str, level: str = "info", data: Any = None) -> None:
        events.append((kind, message, level, data))

    return lambda device=CARD, rank=0: MemorySnapshot(tmp_path, device, rank, tell)


def test_the_first_two_steps_are_saved_and_then_only_what_lives_is_recorded(
    made: Callable[..., MemorySnapshot], allocator: Allocator, tmp_path: Path, events: Events
) -> None:
    snapshot = made()
    snapshot.begin()
    for step in range(101, 105):
        snapshot.step_done(step)
    assert allocator.recorded == ["all", "state"]
    assert [path.name for path in (tmp_path / "memory").iterdir()] == ["snapshot-step-102.pickle"]
    path = tmp_path / "memory" / "snapshot-step-102.pickle"
    assert pickle.loads(path.read_bytes()) == allocator.snapshot()
    [(kind, _, level, data)] = events
    assert (kind, level) == ("memory_snapshot", "info")
    assert data == {"path": "memory/snapshot-step-102.pickle", "bytes": path.stat().st_size, "step": 102}


def test_on_a_cpu_it_is_said_once_that_there_is_none(
    made: Callable[..., MemorySnapshot], allocator: Allocator, tmp_path: Path, events: Events
) -> None:
    snapshot = made(CPU)
    snapshot.begin()
    snapshot.step_done(1)
    snapshot.step_done(2)
    [(kind, message, level, _)] = events
    assert (kind, level) == ("memory_snapshot_failed", "warning")
    assert "needs a GPU" in message
    assert allocator.recorded == []
    assert list(tmp_path.iterdir()) == []


def test_only_the_first_process_saves_the_steps_and_each_its_own_out_of_memory(
    made: Callable[..., MemorySnapshot], allocator: Allocator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = made(rank=3)
    snapshot.begin()
    snapshot.step_done(1)
    snapshot.step_done(2)
    assert not (tmp_path / "memory").exists()
    monkeypatch.setenv("RANK", "3")
    path = dump_snapshot(tmp_path, "out-of-memory")
    assert path == tmp_path / "memory" / "snapshot-out-of-memory-rank-3.pickle"
    assert path.is_file()


def test_without_the_setting_an_out_of_memory_leaves_no_file(allocator: Allocator, tmp_path: Path) -> None:
    assert dump_snapshot(tmp_path, "out-of-memory") is None
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_would_be_too_large_keeps_the_newest_allocations(
    made: Callable[..., MemorySnapshot], allocator: Allocator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = len(pickle.dumps(allocator.snapshot()))
    monkeypatch.setattr(memory_snapshot, "LARGEST", whole // 3)
    made().begin()
    path = dump_snapshot(tmp_path, "out-of-memory")
    assert path is not None
    assert path.stat().st_size <= whole // 3
    saved = pickle.loads(path.read_bytes())
    assert saved["segments"] == [{"total_size": 1}]
    assert saved["device_traces"] == [allocator.trace[-250:]]


@pytest.mark.parametrize("trouble", ["too large", "no folder", "no such function", "driver"])
def test_a_snapshot_that_cannot_be_made_ends_nothing(
    made: Callable[..., MemorySnapshot],
    allocator: Allocator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    events: Events,
    capsys: pytest.CaptureFixture[str],
    trouble: str,
) -> None:
    snapshot = made()
    snapshot.begin()
    if trouble == "too large":
        monkeypatch.setattr(memory_snapshot, "LARGEST", 10)
    elif trouble == "no folder":
        (tmp_path / "memory").write_text("a file")
    elif trouble == "no such function":
        monkeypatch.delattr(torch.cuda.memory, "_snapshot")
    else:
        monkeypatch.setattr(torch.cuda.memory, "_snapshot", _broken)
    snapshot.step_done(1)
    snapshot.step_done(2)
    snapshot.step_done(3)
    [(kind, message, level, _)] = events
    assert (kind, level) == ("memory_snapshot_failed", "warning")
    assert "\n" not in message
    assert dump_snapshot(tmp_path, "out-of-memory") is None
    assert "no CUDA memory snapshot" in capsys.readouterr().out
    assert [path for path in tmp_path.rglob("*") if path.suffix in (".part", ".pickle")] == []


def test_a_torch_that_cannot_record_is_told(
    made: Callable[..., MemorySnapshot], allocator: Allocator, monkeypatch: pytest.MonkeyPatch, events: Events
) -> None:
    monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", _broken)
    made().begin()
    [(kind, message, _, _)] = events
    assert kind == "memory_snapshot_failed"
    assert "the driver" in message


def _broken(*arguments: Any, **more: Any) -> None:
    raise RuntimeError("the driver is gone")
