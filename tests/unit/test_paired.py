"""Two runs compared step by step: what is measured, where they first differ, and what the page tells of it."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest
from sample_pair import SamplePair, finished_pair
from sample_run import HOSTILE

from grpo_studio.config_files import dump_config
from grpo_studio.errors import RunNotFoundError
from grpo_studio.job_queue import JobQueue
from grpo_studio.pair_text import as_dict, sentence
from grpo_studio.plots import pair as plots
from grpo_studio.queries import paired
from grpo_studio.queries.paired import Compared, common_steps, compared_to_the_end, drawn, measures_tensors
from grpo_studio.queries.paired_samples import samples_of
from grpo_studio.queries.paired_texts import AROUND
from grpo_studio.settings import Settings
from grpo_studio.store.folder import write_whole
from grpo_studio.store.reader import RunReader
from grpo_studio.store.records import CompletionRecord, GroupRecord, MemorySample
from grpo_studio.store.writer import RunWriter
from grpo_studio.ui.pair import PairActions

WORDS = {"a": "A liger", "b": "B full", "unit": " GB", "sample": "%{y}{unit}"}


@contextmanager
def readers(pair: SamplePair) -> Iterator[tuple[RunReader, RunReader]]:
    with RunReader(pair.a.folder.database) as a, RunReader(pair.b.folder.database) as b:
        yield a, b


def compared(pair: SamplePair) -> Compared:
    with readers(pair) as (a, b):
        return compared_to_the_end(a, b)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> SamplePair:
    """Forty steps each, the first twelve of them equal."""
    return finished_pair(tmp_path_factory.mktemp("home"))


def test_the_first_step_that_differs_is_found_with_both_texts(finished: SamplePair) -> None:
    found = compared(finished)
    assert (found.upto, found.common, found.equal_upto, found.rewards_differ) == (40, 40, 12, 13)
    difference = found.difference
    assert difference is not None
    assert (difference.step, difference.kind, difference.group) == (13, "completions", 1)
    assert difference.sides is not None
    one, other = difference.sides
    assert one.text[: one.at] == other.text[: other.at]
    assert one.text[one.at :] != other.text[other.at :]
    assert sentence(found).endswith("over 40 steps; rewards and completions are equal to the last digit up to step 12.")


def test_memory_and_time_are_of_the_steps_that_both_have_done(settings: Settings) -> None:
    pair = SamplePair(settings.home)
    pair.begin()
    pair.a.advance(8)
    pair.b.advance(5)
    found = compared(pair)
    with readers(pair) as (a, b):
        rows = a.rows("SELECT max(value) FROM metric WHERE name LIKE 'memory/peak/loss' AND step <= 5")
        seconds = a.rows("SELECT avg(value) FROM metric WHERE name = 'time/step' AND step BETWEEN 2 AND 5")
        shown = common_steps(a, b)
        assert (drawn(a, shown)["reward"].count(), drawn(b, shown)["reward"].count()) == (8, 5)
    assert found.common == 5
    assert found.a.peak() == ("loss", rows[0][0])
    assert found.a.mean("time/step") == pytest.approx(seconds[0][0])
    assert found.difference is None
    assert found.equal_upto == 5
    assert sentence(found).endswith("over 5 steps; rewards and completions are equal to the last digit in all 5 steps.")


def test_each_look_takes_in_what_is_new_and_ends_where_one_look_at_all_does(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paired, "STEPS_AT_ONCE", 3)
    monkeypatch.setattr(paired, "COMPLETIONS_AT_ONCE", 70)  # two steps of 4 x 8
    pair, steadily = SamplePair(settings.home), Compared()
    pair.begin()
    for round_ in range(6):
        if round_ == 4:
            pair.part()
        pair.a.advance(2)
        with readers(pair) as (a, b):
            steadily.look(a, b)
        pair.b.advance(2)
        with readers(pair) as (a, b):
            steadily.look(a, b)
            steadily.look(a, b)
    assert steadily == compared(pair)
    assert (steadily.equal_upto, steadily.rewards_differ) == (8, 9)


def test_a_resume_that_goes_back_before_the_difference_is_compared_anew(settings: Settings) -> None:
    pair, found = SamplePair(settings.home), Compared()
    pair.begin()
    for run in (pair.a, pair.b):
        run.advance(3)
    state = pair.a.random.getstate()
    pair.part()
    for run in (pair.a, pair.b):
        run.advance(3)
    with readers(pair) as (a, b):
        found.look(a, b)
    assert found.rewards_differ == 4
    pair.b.writer.close()
    pair.b.writer = RunWriter(pair.b.folder.database, attempt=2)
    pair.b.writer.attempt_began(3, "checkpoint-3", "goes on")
    pair.b.now = 3
    pair.b.random.setstate(state)
    with readers(pair) as (a, b):
        found.look(a, b)
        assert (found.common, found.rewards_differ, found.difference) == (3, None, None)
    pair.b.advance(3)
    with readers(pair) as (a, b):
        found.look(a, b)
    assert (found.common, found.equal_upto, found.difference) == (6, 6, None)


def _recorded(pair: SamplePair, *sides: list[list[tuple[str, list[str]]]]) -> Compared:
    """Compare runs of these groups: for each side the steps, for each step the groups as (prompt, texts)."""
    for run, steps in zip((pair.a, pair.b), sides, strict=True):
        for step, groups in enumerate(steps, start=1):
            records = [
                GroupRecord(
                    prompt, "1", tuple(CompletionRecord(text, 3, False, 0.5, 0.0, ()) for text in texts), 0.5, 0.0
                )
                for prompt, texts in groups
            ]
            run.writer.groups(step, records)
            run.writer.metrics(step, {"optim/loss": 0.1, "reward/mean": 0.5})
    return compared(pair)


LONG = "x" * 1000


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ([("p", ["one", "two"])], [("p", ["one", "two"])], None),
        ([("p", ["one", "two"])], [("p", ["one", "tow"])], ("completions", 1, 2, ("two", 1), ("tow", 1))),
        ([("p", ["one"]), ("q", ["a"])], [("p", ["one"]), ("q", ["ab"])], ("completions", 2, 1, ("a", 1), ("ab", 1))),
        ([("p", [""])], [("p", ["x"])], ("completions", 1, 1, ("", 0), ("x", 0))),
        ([("p", [LONG + "1" + LONG])], [("p", [LONG + "2" + LONG])], ("completions", 1, 1, None, None)),
        ([("p", ["one"])], [("q", ["one"])], ("prompts", 1, 0, None, None)),
        ([("p", ["one", "two"])], [("p", ["one"])], ("size", 1, 0, None, None)),
        ([("p", ["one"]), ("q", ["a"])], [("p", ["one"])], ("size", 1, 0, None, None)),
        ([("p", ["\ud83d\ude00a".encode("utf-16", "surrogatepass").decode("utf-16")])], [("p", ["\U0001f600b"])],
         ("completions", 1, 1, ("\U0001f600a", 1), ("\U0001f600b", 1))),
    ],
    ids=range(9),
)  # fmt: skip
def test_groups_that_are_not_the_same_are_told_by_kind_and_place(
    settings: Settings, a: list[Any], b: list[Any], found: tuple[Any, ...] | None
) -> None:
    first = [("same", ["x", "y"])]
    told = _recorded(SamplePair(settings.home), [first, a], [first, b])
    assert told.rewards_differ is None
    if found is None:
        assert told.difference is None
        return
    difference = told.difference
    assert difference is not None
    assert (difference.step, difference.kind, difference.group, difference.place) == (2, *found[:3])
    assert told.equal_upto == 1
    if found[3] is not None:
        assert difference.sides is not None
        assert [(side.text, side.at) for side in difference.sides] == list(found[3:])
    json.dumps(as_dict(told))


def test_of_a_long_text_only_what_lies_around_the_difference_is_told(settings: Settings) -> None:
    told = _recorded(SamplePair(settings.home), [[("p", [LONG + "1" + LONG])]], [[("p", [LONG + "2" + LONG])]])
    assert told.difference is not None
    assert told.difference.sides is not None
    one = told.difference.sides[0]
    assert (one.text[one.at], one.begins + one.at, one.length) == ("1", 1000, 2001)
    assert len(one.text) == 2 * AROUND


def test_a_step_without_rewards_counts_for_no_average(settings: Settings) -> None:
    pair = SamplePair(settings.home)
    for run, reward in ((pair.a, 0.5), (pair.b, 0.25)):
        run.writer.metrics(1, {"optim/loss": 0.0, "reward/mean": None})
        run.writer.metrics(2, {"optim/loss": 0.0, "reward/mean": reward})
    found = compared(pair)
    assert (found.steps, found.gap, found.rewards_differ) == (1, 0.25, 2)


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        (({"memory/peak/loss": 6e9}, {"memory/peak/loss": 32.1e9}), "A uses 81 % less memory at its peak (6.0 GB in loss against 32 GB)"),
        (({"memory/peak/loss": 3e9}, {"memory/peak/rollout": 2e9}), "A uses 50 % more memory at its peak (3.0 GB in loss against 2.0 GB in rollout)"),
        (({"memory/peak/loss": 1e9}, {"memory/peak/loss": 1.01e9}), "A uses as much memory at its peak (1.0 GB in loss against 1.0 GB)"),
        (({"time/step": 5.6}, {"time/step": 5.0}), "A takes 1.12 times as long for a step (5.6 s against 5 s)"),
        (({"time/step": 2.5}, {"time/step": 5.0}), "A takes 50 % less time for a step (2.5 s against 5 s)"),
        (({"time/step": 5.0}, {"time/step": 5.01}), "A takes as long for a step (5 s against 5.01 s)"),
        (({"memory/peak/save": 9e9}, {"memory/peak/save": 1e9}), "A and B are alike over"),
        (({"time/step": 0.0}, {"time/step": 1.0}), "A and B are alike over"),
    ],
    ids=range(8),
)  # fmt: skip
def test_the_sentence_says_what_was_measured(
    settings: Settings, metrics: tuple[dict[str, float], dict[str, float]], told: str
) -> None:
    pair = SamplePair(settings.home)
    for run, own in zip((pair.a, pair.b), metrics, strict=True):
        for step in (1, 2):
            run.writer.metrics(step, {"optim/loss": 0.0, "reward/mean": 0.5} | own)
    assert told in sentence(compared(pair))


# The figures


def _accepted(figure: dict[str, Any]) -> None:
    go.Figure(data=figure["data"], layout=figure["layout"])
    json.dumps(figure, allow_nan=False)


def test_both_lines_lie_over_each_other_and_the_first_difference_is_marked() -> None:
    steps = pd.Index([1, 2, 3], name="step")
    a, b = pd.Series([0.1, math.nan, 0.3], index=steps), pd.Series([0.1, 0.2, math.inf], index=steps)
    figure = plots.with_step_marked(plots.over_steps(a, b, "p", WORDS), 2, "first difference")
    _accepted(figure)
    one, two = figure["data"]
    assert (one["y"], two["y"]) == ([0.1, None, 0.3], [0.1, 0.2, None])
    assert one["line"]["width"] > two["line"]["width"]
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [2]
    assert plots.with_step_marked(figure, None, "") is figure


def test_phases_come_in_the_order_of_a_step_and_one_that_a_side_lacks_is_empty() -> None:
    figure = plots.by_phase({"loss": 2.0, "rollout": 1.0}, {"custom": 1.0, "loss": 3.0}, "p", WORDS, {"loss": "Loss"})
    _accepted(figure)
    assert [trace["x"] for trace in figure["data"]] == [["rollout", "Loss", "custom"]] * 2
    assert [trace["y"] for trace in figure["data"]] == [[1.0, 2.0, None], [None, 3.0, 1.0]]


def test_on_the_timeline_a_phase_is_as_wide_in_both_whatever_it_took() -> None:
    columns = ["step", "phase", "share", "value"]
    a = pd.DataFrame([(1, "rollout", 0.5, 1e9), (1, "loss", 0.5, 3e9)], columns=columns)
    b = pd.DataFrame([(1, "rollout", 0.5, 1e9), (1, "loss", 0.5, 2e9)], columns=columns)
    figure = plots.timeline(a, b, [{"rollout": 3.0, "loss": 1.0}, {"rollout": 9.0, "loss": 3.0}], "p", WORDS)
    _accepted(figure)
    one, two = figure["data"]
    assert one["x"] == two["x"] == [0.875, 1.375]
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [1.25]
    assert (one["y"], one["hovertemplate"]) == ([1.0, 3.0], "%{y} GB")
    empty = pd.DataFrame([], columns=columns)
    _accepted(plots.timeline(empty, empty, [{}, {}], "p", WORDS))


def test_a_phase_out_of_an_imported_run_is_no_markup_in_the_charts() -> None:
    hostile = '<a href="https://example.org">loss</a>'
    frame = pd.DataFrame([(1, hostile, 0.5, 1e9)], columns=["step", "phase", "share", "value"])
    figures = [plots.timeline(frame, frame, [{}, {}], "p", WORDS), plots.by_phase({hostile: 1.0}, {}, "p", WORDS, {})]
    for figure in figures:
        _accepted(figure)
        assert "<a" not in json.dumps(figure)
        assert "&lt;a href" in json.dumps(figure)


def test_samples_of_steps_are_found_without_reading_the_run(finished: SamplePair) -> None:
    with readers(finished) as (a, _):
        found = samples_of(a, 35, 40)
        everything = a.rows("SELECT step, phase, rss FROM memory_sample WHERE step BETWEEN 35 AND 40 ORDER BY id")
        assert list(found[["step", "phase"]].itertuples(index=False, name=None)) == [row[:2] for row in everything]
        assert found["share"].between(0, 1).all()
        assert samples_of(a, 900, 901).empty
        assert measures_tensors(a) is (a.rows("SELECT allocated FROM memory_sample LIMIT 1")[0][0] is not None)


def test_samples_without_a_value_are_left_out(tmp_path: Path) -> None:
    pair = SamplePair(tmp_path)
    empty, full = (
        MemorySample(1.0, 1, phase, "cpu", None, None, rss) for phase, rss in (("rollout", None), ("loss", 9))
    )
    pair.a.writer.memory_samples([empty, full])
    with readers(pair) as (a, _):
        assert list(samples_of(a, 1, 1)["phase"]) == ["loss"]


# The page


def test_the_page_gets_everything_once_and_then_what_is_new(settings: Settings) -> None:
    pair = SamplePair(settings.home)
    pair.begin()
    actions = PairActions(settings)
    news = actions.pair_tick({"pair": pair.id})
    assert news["about"]["title"] == "Loss backend"
    assert news["measured"]["steps"] == 0
    assert [side["value"] for side in news["sides"]] == ["liger", "full"]
    assert actions.pair_tick({"pair": pair.id, "cursor": news["cursor"]}) == {"cursor": news["cursor"]}
    pair.a.writer.event("note", "nothing that the figures show")
    told = actions.pair_tick({"pair": pair.id, "cursor": news["cursor"]})
    assert "figures" not in told
    pair.a.advance(2)
    told = actions.pair_tick({"pair": pair.id, "cursor": told["cursor"]})
    assert [len(trace["x"]) for trace in told["figures"]["reward"]["data"]] == [2, 2]
    assert told["figures"]["timeline"]["data"] == []
    pair.b.advance(2)
    told = actions.pair_tick({"pair": pair.id, "cursor": told["cursor"]})
    assert told["measured"]["steps"] == 2
    assert [row["meant"] for row in told["settings"]] == [True]
    for figure in told["figures"].values():
        _accepted(figure)


@pytest.mark.parametrize("gone", [0, 1])
def test_a_half_that_is_gone_or_unreadable_costs_the_page_nothing(settings: Settings, gone: int) -> None:
    pair = finished_pair(settings.home, steps=3, equal=3)
    actions = PairActions(settings)
    news = actions.pair_tick({})
    run = (pair.a, pair.b)[gone]
    run.folder.process_path.write_text("{")
    told = actions.pair_tick({"pair": pair.id, "cursor": news["cursor"]})
    assert told["sides"][gone]["state"] == "unreadable"
    assert (told["measured"], told["sides"][1 - gone]["step"]) == (None, 3)
    shutil.rmtree(run.folder.path)
    told = actions.pair_tick({"pair": pair.id, "cursor": told["cursor"]})
    assert told["sides"][gone]["here"] is False
    assert told["settings"] is None
    assert len(told["figures"]["reward"]["data"][1 - gone]["x"]) == 3
    shutil.rmtree((pair.a, pair.b)[1 - gone].folder.path)
    with pytest.raises(RunNotFoundError):
        actions.pair_tick({"pair": pair.id, "cursor": told["cursor"]})
    assert actions.pair_tick({}) == {"empty": True}


def test_settings_that_were_changed_at_a_resume_are_told_beside_the_one_that_is_meant(settings: Settings) -> None:
    pair = finished_pair(settings.home, steps=3, equal=3)
    limits = pair.b.config.limits.model_copy(update={"hours": 3.0})
    changed = pair.b.config.model_copy(update={"limits": limits})
    write_whole(pair.b.folder.config_path_of(2), dump_config(changed))
    rows = PairActions(settings).pair_tick({"pair": pair.id})["settings"]
    assert [(row["field"], row["meant"], row["values"]) for row in rows] == [
        ("memory.loss_backend", True, ["liger", "full"]),
        ("limits.hours", False, ["empty", "3.0"]),
    ]


@pytest.mark.parametrize(
    ("field", "values", "row"),
    [
        ("rewards.0.weight", (1.0, 0.5), "rewards"),
        ("algorithm.extra.entropy_coef", (0.0, 0.01), "algorithm.extra"),
        ("dataset.columns.prompt", ("a", "b"), "dataset.columns.prompt"),
    ],
)
def test_a_setting_inside_a_list_or_map_is_the_row_that_is_meant(
    settings: Settings, field: str, values: tuple[Any, Any], row: str
) -> None:
    pair = SamplePair(settings.home, field=field, values=values)
    rows = PairActions(settings).pair_tick({"pair": pair.id})["settings"]
    assert [(one["field"], one["meant"]) for one in rows] == [(row, True)]


def test_waiting_in_the_queue_is_told_from_being_in_none(settings: Settings) -> None:
    pair = SamplePair(settings.home)
    JobQueue(settings.queue_path).add(pair.a.folder.path)
    sides = PairActions(settings).pair_tick({"pair": pair.id})["sides"]
    assert [(side["state"], side["waits"]) for side in sides] == [("queued", True), ("queued", False)]


@pytest.mark.parametrize(
    "request_",
    [{"pair": "../../etc"}, {"pair": "x" * 150}, {"pair": "20261130-000000-none-0000"}, {"pair": HOSTILE[:90]}],
)
def test_a_pair_that_is_none_is_refused(settings: Settings, request_: dict[str, Any]) -> None:
    SamplePair(settings.home)
    with pytest.raises(RunNotFoundError):
        PairActions(settings).pair_tick(request_)


@pytest.mark.parametrize("cursor", [None, [], 3, {}, {"a": 1}, {"pair": 7, "a": {}, "b": None}])
def test_a_cursor_that_is_none_gets_everything(settings: Settings, cursor: Any) -> None:
    pair = SamplePair(settings.home)
    assert "figures" in PairActions(settings).pair_tick({"pair": pair.id, "cursor": cursor})


def test_a_tick_of_a_long_pair_compares_no_more_than_its_share(tmp_path: Path) -> None:
    pair = SamplePair(tmp_path, steps=6000)
    for run in (pair.a, pair.b):
        with run.writer.transaction():
            for step in range(1, 5001):
                run.writer.metrics(step, {"optim/loss": 0.0, "reward/mean": 0.5})
    found = Compared()
    with readers(pair) as (a, b):
        found.look(a, b)
        assert (found.upto, found.common, found.whole) == (paired.STEPS_AT_ONCE, 5000, False)
        assert compared_to_the_end(a, b).equal_upto == 5000
        assert len(common_steps(a, b).shown) <= 600
