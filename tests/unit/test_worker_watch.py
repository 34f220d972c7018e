"""When a worker's time is up, by clocks that are set back; its log within a bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, create_run, write_whole
from grpo_studio.store.log import bound, tail
from grpo_studio.store.reader import RunReader
from grpo_studio.store.writer import RunWriter
from grpo_studio.worker_watch import END_WITHIN, Watch


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def folder(settings: Settings) -> RunFolder:
    return create_run(settings.runs_dir, RunConfig(), "watched")


@pytest.fixture
def clock() -> Clock:
    return Clock()


def watch(folder: RunFolder, settings: Settings, clock: Clock, grace: float = 60.0) -> Watch:
    return Watch(folder, replace(settings, grace_seconds=grace), 1, clock)


@pytest.mark.parametrize("written", ["0", "nonsense", "", "1e12", "1796051000"])
def test_the_grace_after_a_stop_counts_from_when_it_was_seen(
    folder: RunFolder, settings: Settings, clock: Clock, written: str
) -> None:
    """Whatever time the request holds: the wall clock was set back or forward since, or was wrong."""
    seen = watch(folder, settings, clock)
    assert not seen.time_is_up()
    write_whole(folder.stop_request, written)
    clock.now += 100
    assert not seen.time_is_up()
    clock.now += 59
    assert not seen.time_is_up()
    clock.now += 2
    assert seen.time_is_up()


def test_a_stop_that_was_taken_back_counts_anew(folder: RunFolder, settings: Settings, clock: Clock) -> None:
    seen = watch(folder, settings, clock)
    write_whole(folder.stop_request, "")
    assert not seen.time_is_up()
    folder.stop_request.unlink()
    clock.now += 100
    assert not seen.time_is_up()
    write_whole(folder.stop_request, "")
    assert not seen.time_is_up()


@pytest.mark.parametrize(
    ("kind", "attempt"), [("run_finished", 1), ("run_failed", 1), ("run_paused", 1), ("run_stopped", 1)]
)
def test_a_worker_that_has_told_its_end_has_to_go(
    folder: RunFolder, settings: Settings, clock: Clock, kind: str, attempt: int
) -> None:
    seen = watch(folder, settings, clock)
    assert not seen.time_is_up()
    writer = RunWriter(folder.database, attempt)
    writer.event(kind, "the end")
    writer.event("later", "a last word")
    writer.close()
    clock.now += 3
    assert not seen.time_is_up()
    clock.now += END_WITHIN - 1
    assert not seen.time_is_up()
    clock.now += 2
    assert seen.time_is_up()


def test_the_end_of_an_earlier_attempt_is_none_of_this_one(folder: RunFolder, settings: Settings, clock: Clock) -> None:
    writer = RunWriter(folder.database, 2)
    writer.event("run_paused", "the end")
    writer.close()
    seen = watch(folder, settings, clock)
    for _ in range(5):
        assert not seen.time_is_up()
        clock.now += END_WITHIN


def test_a_record_that_cannot_be_read_ends_no_worker(folder: RunFolder, settings: Settings, clock: Clock) -> None:
    folder.database.unlink()
    seen = watch(folder, settings, clock)
    for _ in range(3):
        assert not seen.time_is_up()
        clock.now += END_WITHIN


def test_a_clock_that_is_set_back_changes_no_order(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = RunWriter(folder.database, 1)
    for number, moment in enumerate((5000.0, 4000.0, 6000.0, 10.0)):
        monkeypatch.setattr("time.time", lambda moment=moment: moment)
        writer.event("said", str(number))
        writer.metrics(number + 1, {"optim/loss": float(number)})
    writer.close()
    with RunReader(folder.database) as reader:
        assert [event.message for event in reader.events() if event.kind == "said"] == ["0", "1", "2", "3"]
        assert reader.last_metrics() == {"optim/loss": 3.0}
        assert reader.last_step() == 4


def test_a_log_keeps_its_begin_and_its_end(tmp_path: Path) -> None:
    path = tmp_path / "worker.log"
    path.write_text("".join(f"line {number}\n" for number in range(10_000)))
    size = path.stat().st_size
    with path.open("ab") as worker:
        gone = bound(path, largest=50_000, head=1000, tail=5000)
        worker.write(b"it goes on\n")
    text = path.read_text()
    assert text.startswith("line 0\nline 1\n")
    assert text.endswith("line 9998\nline 9999\nit goes on\n")
    assert f"\n[{gone:,} bytes are left out here: the log is kept below 50,000]\n" in text
    kept = [line for line in text.splitlines() if line.startswith("line ")]
    assert sum(len(line) + 1 for line in kept) == size - gone
    assert path.stat().st_size < 7000
    assert bound(path, largest=50_000, head=1000, tail=5000) == 0
    assert tail(path, 300).endswith("it goes on\n")


@pytest.mark.parametrize("content", [b"", b"x" * 100_000, b"\xff\x00" * 50_000, b"\n" * 100_000])
def test_a_log_of_anything_is_bounded(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "worker.log"
    path.write_bytes(content)
    bound(path, largest=50_000, head=1000, tail=5000)
    assert path.stat().st_size < 7000
    assert bound(tmp_path / "none.log") == 0
