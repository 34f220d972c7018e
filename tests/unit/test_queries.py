"""Frames from the store: bounded whatever the run's length, the newest always kept, superseded rows left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grpo_studio import queries
from grpo_studio.queries import groups
from grpo_studio.store.log import tail
from grpo_studio.store.reader import RunReader
from grpo_studio.store.records import CompletionRecord, GroupRecord, MemorySample, ScoreRecord
from grpo_studio.store.writer import RunWriter


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


@pytest.fixture
def writer(database: Path) -> Iterator[RunWriter]:
    writer = RunWriter(database, attempt=1)
    yield writer
    writer.close()


def _steps(writer: RunWriter, first: int, last: int, value: float = 1.0) -> None:
    with writer.transaction():
        for step in range(first, last + 1):
            writer.metrics(step, {"optim/loss": 0.0, "reward/mean": value * step})


def _group(step: int = 1, prompt: str = "p", rewards: tuple[float | None, ...] = (1.0, 0.0)) -> GroupRecord:
    completions = tuple(
        CompletionRecord(
            f"text {step} {n}",
            3,
            False,
            reward,
            None if reward is None else reward - 0.5,
            (ScoreRecord("v", reward, 1.0),),
        )
        for n, reward in enumerate(rewards)
    )
    return GroupRecord(prompt, "12", completions, 0.5, 0.7)


def test_a_run_without_steps_gives_empty_frames(writer: RunWriter, database: Path) -> None:
    with RunReader(database) as reader:
        shown = queries.steps(reader)
        assert shown.empty
        assert queries.metrics(reader, ["reward/mean"], shown).empty
        assert queries.evaluations(reader).empty
        assert queries.MemoryHistory().frame(reader).empty
        assert queries.minimap(reader).empty
        assert queries.advantages(reader).empty
        assert queries.phase_times(reader, shown).empty
        assert queries.group_range(reader) == (0, 0)
        assert queries.nearest_group_step(reader, 5) is None


@pytest.mark.parametrize("length", [1, 2, 599, 600, 601, 1199, 1201, 3000])
def test_steps_are_at_most_600_and_hold_the_newest(writer: RunWriter, database: Path, length: int) -> None:
    _steps(writer, 1, length)
    with RunReader(database) as reader:
        shown = queries.steps(reader)
        frame = queries.metrics(reader, ["reward/mean"], shown)
    assert len(frame) <= 600
    assert frame.index[-1] == length
    assert frame["reward/mean"].iloc[-1] == length
    assert len(frame) >= min(length, 300)


def test_superseded_steps_of_an_earlier_attempt_are_left_out(writer: RunWriter, database: Path) -> None:
    _steps(writer, 1, 10, value=1)
    second = RunWriter(database, attempt=2)
    second.attempt_began(5, "checkpoint-5", "goes on after step 5")
    _steps(second, 6, 7, value=100)
    second.close()
    with RunReader(database) as reader:
        frame = queries.metrics(reader, ["reward/mean"], queries.steps(reader))
    assert list(frame.index) == [1, 2, 3, 4, 5, 6, 7]
    assert list(frame["reward/mean"]) == [1, 2, 3, 4, 5, 600, 700]


def test_a_metric_that_a_run_does_not_have_is_a_column_of_nothing(writer: RunWriter, database: Path) -> None:
    _steps(writer, 1, 3)
    with RunReader(database) as reader:
        frame = queries.metrics(reader, ["policy/kl"], queries.steps(reader))
    assert frame["policy/kl"].isna().all()


def test_metric_names_match_a_pattern(writer: RunWriter, database: Path) -> None:
    writer.metrics(1, {"memory/peak/loss": 1.0, "memory/peak/rollout": 2.0, "optim/loss": 0.0})
    with RunReader(database) as reader:
        assert queries.metric_names(reader, "memory/peak/*") == ["memory/peak/loss", "memory/peak/rollout"]
        assert queries.metric_names(reader, "eval/*") == []


def test_evaluations_include_the_one_before_training(writer: RunWriter, database: Path) -> None:
    writer.metrics(0, {"eval/reward": 0.1})
    _steps(writer, 1, 4)
    writer.metrics(4, {"eval/reward": 0.4})
    with RunReader(database) as reader:
        frame = queries.evaluations(reader)
    assert list(frame["step"]) == [0, 4]
    assert list(frame["eval/reward"]) == [0.1, 0.4]


def test_memory_is_bounded_and_keeps_peaks_and_the_newest(writer: RunWriter, database: Path) -> None:
    samples = [
        MemorySample(float(n), n // 10, "loss", "cpu", None, None, 9_000 if n == 1234 else n) for n in range(5000)
    ]
    with writer.transaction():
        writer.memory_samples(samples)
    with RunReader(database) as reader:
        frame = queries.MemoryHistory().frame(reader)
        assert queries.newest_memory_time(reader) == 4999
    assert len(frame) <= 600
    assert frame["rss"].max() == 9_000
    assert frame["ts"].iloc[-1] == 4999
    assert frame["allocated"].isna().all()


def test_the_minimap_is_bounded(writer: RunWriter, database: Path) -> None:
    with writer.transaction():
        for step in range(1, 501):
            writer.groups(step, [_group(step)] * 20 if step == 500 else [_group(step)])
    with RunReader(database) as reader:
        frame = queries.minimap(reader)
        heat = queries.advantages(reader)
    assert frame["step"].nunique() <= queries.MINIMAP_COLUMNS
    assert frame["step"].max() == 500
    assert len(frame[frame["step"] == 500]) == queries.MINIMAP_ROWS
    assert heat["step"].nunique() <= queries.HEAT_COLUMNS


def test_completions_are_ordered_by_advantage_and_texts_are_cut(writer: RunWriter, database: Path) -> None:
    long = CompletionRecord("x" * 10_000, 9, True, 0.0, -0.5, (ScoreRecord("v", None, 1.0, reason="no gold"),))
    good = CompletionRecord("good", 1, False, 1.0, 0.5)
    abstained = CompletionRecord("?", 1, False, None, None)
    with writer.transaction():
        writer.groups(3, [GroupRecord("prompt", None, (long, abstained, good), 0.5, 0.7)])
    with RunReader(database) as reader:
        strips = queries.groups_of_step(reader, 3)
        group_id = int(strips["group"].iloc[0])
        frame = queries.completions(reader, group_id)
        scores = queries.scores(reader, [int(number) for number in frame["id"]])
        whole = queries.full_text(reader, "completion", int(frame["id"].iloc[1]))
        assert queries.full_text(reader, "event", 1) is None
        assert queries.group(reader, 99) is None
    assert list(frame["text"].str.slice(0, 4)) == ["good", "xxxx", "?"]
    assert list(frame["length"]) == [4, 10_000, 1]
    assert frame["text"].str.len().max() == queries.SHORT_TEXT
    assert whole == "x" * 10_000
    assert scores["value"].isna().all()
    assert list(strips["reward"].fillna(-1)) == [1.0, 0.0, -1.0]


def test_the_nearest_step_with_groups_is_found(writer: RunWriter, database: Path) -> None:
    with writer.transaction():
        for step in (2, 4, 8):
            writer.groups(step, [_group(step, prompt="same")])
    with RunReader(database) as reader:
        assert [queries.nearest_group_step(reader, step) for step in (1, 2, 5, 99)] == [2, 2, 4, 8]
        assert queries.seen_at(reader, 1) == queries.Seen([2, 4, 8], first=True)
        assert queries.seen_at(reader, 2) == queries.Seen([2, 4, 8], first=False)


def test_recent_events_are_the_newest(writer: RunWriter, database: Path) -> None:
    for number in range(queries.EVENTS + 50):
        writer.event("evaluation", str(number))
    with RunReader(database) as reader:
        found = queries.recent_events(reader)
        last = found[-1].id
        assert queries.recent_events(reader, after=last) == []
        assert len(queries.recent_events(reader, after=last - 3)) == 3
    assert len(found) == queries.EVENTS
    assert found[-1].message == str(queries.EVENTS + 49)


def test_the_tail_of_a_log_begins_at_a_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    assert tail(log) == ""
    log.write_bytes(b"first\n" + b"x" * 50 + b"\nlast \xff\n")
    assert tail(log, 20) == "last \ufffd\n"


def test_a_long_run_is_drawn_from_its_first_step_and_judged_by_its_last_rows(writer: RunWriter, database: Path) -> None:
    _steps(writer, 1, 1201)
    writer.metrics(1201, {"memory/peak/loss": 1.0})
    writer.metrics(1100, {"memory/peak/loss": 7.0})
    with RunReader(database) as reader:
        shown = queries.steps(reader)
        recent = queries.metrics(reader, ["reward/mean"], queries.last_steps(shown, 10))["reward/mean"]
        assert (shown.shown[0], shown.shown[-1]) == (1, 1201)
        assert len(shown.shown) <= queries.POINTS
        assert queries.ends(reader, "reward/mean") == (1.0, 1201.0)
        assert queries.ends(reader, "no/such") == (None, None)
        totals = queries.Totals()
        totals.look(reader, ["memory/peak/loss"])
    assert list(recent) == [float(step) for step in range(1192, 1202)]
    assert totals.peaks == {"memory/peak/loss": 7.0}


def test_the_pace_is_that_of_the_newest_attempt_that_has_steps(writer: RunWriter, database: Path) -> None:
    _steps(writer, 1, 30)
    second = RunWriter(database, attempt=2)
    second.attempt_began(30, "checkpoint-30", "goes on after step 30")
    second.metrics(31, {"reward/mean": 1.0})
    second.close()
    with RunReader(database) as reader:
        assert queries.step_seconds(reader) is not None


def test_totals_read_on_and_begin_anew_after_a_resume(writer: RunWriter, database: Path) -> None:
    totals = queries.Totals()
    names = ["verifier/v/abstained", "late"]

    def look() -> tuple[float | None, int, int]:
        with RunReader(database) as reader, reader.snapshot():
            totals.look(reader, names)
            assert reader.counts() == (totals.groups, totals.completions)
        return totals.sums.get("verifier/v/abstained"), totals.groups, totals.completions

    assert look() == (None, 0, 0)
    for step in range(1, 5):
        with writer.transaction():
            writer.groups(step, [_group(step)])
            writer.metrics(step, {"optim/loss": 0.0, "verifier/v/abstained": 1.0})
        assert look() == (step, step, 2 * step)
    writer.groups(4, [GroupRecord("e", "1", _group().completions, 0.5, 0.7, split="eval")])
    assert look() == (4, 4, 8)
    second = RunWriter(database, attempt=2)
    second.attempt_began(2, "checkpoint-2", "goes on after step 2")
    second.metrics(3, {"optim/loss": 0.0, "verifier/v/abstained": 5.0, "late": 2.0})
    second.close()
    assert look() == (7, 2, 4)
    assert totals.peaks["late"] == 2.0


def test_a_memory_history_that_reads_on_is_the_one_that_reads_all(writer: RunWriter, database: Path) -> None:
    grown = queries.MemoryHistory(points=50)
    for start in range(0, 1000, 130):
        writer.memory_samples(
            MemorySample(float(n), n, "loss" if n % 7 else "rollout", "cpu", None, None, (n * 37) % 101)
            for n in range(start, start + 130)
        )
        with RunReader(database) as reader:
            frame = grown.frame(reader)
            assert frame.equals(queries.MemoryHistory(points=50).frame(reader))
        assert len(frame) <= 50
        assert frame["rss"].max() == 100
        assert frame["ts"].iloc[-1] == start + 129
    assert all((row.ts * 37) % 101 == row.rss for row in frame.itertuples()), "a phase belongs to another sample"
    assert all((row.phase == "loss") is bool(row.step % 7) for row in frame.itertuples())


def test_each_device_keeps_its_own_peaks_however_long_the_run(writer: RunWriter, database: Path) -> None:
    grown = queries.MemoryHistory(points=50)
    for start in range(0, 1200, 150):
        writer.memory_samples(
            MemorySample(float(n), n // 6, "loss", f"cuda:{n % 3}", 10**6 if n in (91, 92) else n % 97, 5, 1)
            for n in range(start, start + 150)
        )
        with RunReader(database) as reader:
            frame = grown.frame(reader)
            assert frame.equals(queries.MemoryHistory(points=50).frame(reader))
        assert len(frame) <= 100
        assert frame["ts"].is_monotonic_increasing
        assert set(frame.groupby("device")["allocated"].max()) == {10**6, 96.0}
    exact = frame[frame["exact"]]
    assert list(exact["ts"]) == [float(n) for n in range(1200 - len(exact), 1200)]
    assert len(exact) >= 30
    assert not frame["exact"].iloc[0]


def test_every_sample_of_a_short_run_is_shown(writer: RunWriter, database: Path) -> None:
    writer.memory_samples(MemorySample(float(n), 1, "loss", "cpu", None, None, n) for n in range(16))
    with RunReader(database) as reader:
        frame = queries.MemoryHistory(points=50).frame(reader)
    assert list(frame["rss"]) == list(range(16))
    assert frame["exact"].all()


def test_peaks_by_phase_and_device_are_read_on(writer: RunWriter, database: Path) -> None:
    grown = queries.MemoryPeaks()

    def step(number: int, *rows: tuple[str, str, int], to: RunWriter = writer) -> list[queries.PhasePeak]:
        to.memory_samples(
            MemorySample(float(number), number, phase, device, value, None, 1) for device, phase, value in rows
        )
        with RunReader(database) as reader:
            peaks = grown.look(reader)
            assert sorted(peaks, key=str) == sorted(queries.MemoryPeaks().look(reader), key=str)
        return peaks

    assert step(1) == []
    assert step(1, ("cpu", "loss", 5), ("cpu", "save", 2)) == [
        queries.PhasePeak("cpu", "loss", 5, 1, 5, 1),
        queries.PhasePeak("cpu", "save", 2, 1, 2, 1),
    ]
    step(2, ("cpu", "loss", 9), ("cuda:1", "loss", 1))
    assert step(2, ("cpu", "loss", 7))[0] == queries.PhasePeak("cpu", "loss", 9, 2, 9, 2)
    peaks = {(peak.device, peak.phase): peak for peak in step(3, ("cpu", "loss", 4))}
    assert peaks["cpu", "loss"] == queries.PhasePeak("cpu", "loss", 9, 2, 4, 3)
    assert peaks["cpu", "save"].last_step == 1
    assert peaks["cuda:1", "loss"].greatest == 1
    second = RunWriter(database, attempt=2)
    second.attempt_began(1, "checkpoint-1", "goes on after step 1")
    peaks = {(peak.device, peak.phase): peak for peak in step(2, ("cpu", "loss", 6), to=second)}
    second.close()
    assert peaks["cpu", "loss"] == queries.PhasePeak("cpu", "loss", 9, 2, 6, 2)


@pytest.mark.parametrize(
    ("data", "size"),
    [
        ({"device": "cuda:0", "bytes": 8}, 8),
        ({"device": "cuda:0", "bytes": "8"}, 0),
        ({"device": "cuda:0", "bytes": -8}, 0),
        ({"device": "cuda:0", "bytes": 10**30}, 0),
        ({"device": 5, "bytes": 8}, 0),
        ({}, 0),
        (None, 0),
    ],
)
def test_the_size_of_the_card_is_that_of_the_newest_attempt(
    writer: RunWriter, database: Path, data: dict[str, Any] | None, size: int
) -> None:
    writer.event("memory_watched", "of an older attempt", data={"device": "cpu", "bytes": 99})
    writer.event("memory_watched", "watched", data=data)
    with RunReader(database) as reader:
        assert queries.watched(reader).size == size


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("memory/snapshot-step-2.pickle", True),
        ("memory/snapshot-out-of-memory-rank-3.pickle", True),
        ("/etc/passwd", False),
        ("memory/../../secret.pickle", False),
        ("memory/snapshot-a\n.pickle", False),
        (7, False),
        (None, False),
    ],
)
def test_a_snapshot_lies_below_the_run_or_is_none(writer: RunWriter, database: Path, path: Any, known: bool) -> None:
    with RunReader(database) as reader:
        assert queries.memory_snapshot(reader) is None
    writer.event("memory_snapshot", "saved", data={"path": path})
    with RunReader(database) as reader:
        assert queries.memory_snapshot(reader) == (path if known else None)


def test_first_seen_is_said_only_when_it_is_known(writer: RunWriter, database: Path) -> None:
    many = groups.SEEN_WITHIN + 10
    with writer.transaction():
        for step in range(1, many + 1):
            writer.groups(step, [_group(step, prompt="rare" if step in (1, many) else f"p{step}")])
    with RunReader(database) as reader:
        assert queries.seen_at(reader, 1) == queries.Seen([1], first=True)
        assert queries.seen_at(reader, many) == queries.Seen([many], first=False)
