"""The Live and Runs pages' server functions: nothing new means no figure, and no request can leave the runs folder."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sample_run import SampleRun

from grpo_studio.settings import Settings
from grpo_studio.ui.frame import guarded
from grpo_studio.ui.live import LiveActions
from grpo_studio.ui.live_view import kind_of, run_name
from grpo_studio.ui.runs import PAGE, RunsActions


@pytest.fixture
def run(settings: Settings) -> SampleRun:
    run = SampleRun(settings.home)
    run.begin()
    run.advance(3)
    return run


@pytest.fixture
def live(settings: Settings) -> LiveActions:
    return LiveActions(settings)


def test_without_runs_the_page_is_invited_to_launch(live: LiveActions) -> None:
    assert live.live_tick({}) == {"empty": True}


def test_the_first_tick_holds_everything_and_is_json(run: SampleRun, live: LiveActions) -> None:
    news = live.live_tick({})
    json.dumps(news, allow_nan=False)
    assert {"cursor", "about", "strip", "charts", "groups", "memory", "events"} <= set(news)
    assert news["about"]["id"] == run.folder.run_id
    assert news["strip"]["state"] == "running"
    assert (news["strip"]["step"], news["strip"]["steps"]) == (3, 60)
    assert {row["name"] for row in news["charts"]["facts"]["held_out"]} == {"reward", "math_numeric", "bare_number"}


def test_a_tick_with_nothing_new_holds_only_the_cursor(run: SampleRun, live: LiveActions) -> None:
    cursor = live.live_tick({"run": run.folder.run_id})["cursor"]
    assert live.live_tick({"run": run.folder.run_id, "cursor": cursor}) == {"cursor": cursor}


def test_a_tick_after_a_step_holds_that_step_but_not_what_never_changes(run: SampleRun, live: LiveActions) -> None:
    cursor = live.live_tick({})["cursor"]
    run.advance()
    news = live.live_tick({"cursor": cursor})
    assert news["strip"]["step"] == 4
    assert news["groups"]["last"] == 4
    assert news["charts"]["figures"]["reward"]["data"][-2]["x"][-1] == 4
    assert "about" not in news


def test_an_event_alone_brings_no_figure(run: SampleRun, live: LiveActions) -> None:
    cursor = live.live_tick({})["cursor"]
    run.writer.event("checkpoint_saved", "step 3")
    news = live.live_tick({"cursor": cursor})
    assert [event["message"] for event in news["events"]] == ["step 3"]
    assert not {"charts", "groups", "memory"} & set(news)


def test_a_change_of_state_alone_brings_the_strip(run: SampleRun, live: LiveActions) -> None:
    cursor = live.live_tick({})["cursor"]
    run.folder.stop_request.touch()
    news = live.live_tick({"cursor": cursor})
    assert news["strip"]["state"] == "stopping"
    assert "charts" not in news


def test_a_group_opens_with_scores_and_hostile_text_as_it_is(run: SampleRun, live: LiveActions) -> None:
    strips = live.live_step({"step": 2})
    assert strips["step"] == 2
    assert len(strips["groups"]) == 4
    detail = live.live_group({"group": strips["groups"][0]["id"]})
    advantages = [item["advantage"] for item in detail["completions"]]
    assert advantages == sorted(advantages, reverse=True)
    hostile = next(item for item in detail["completions"] if "onerror" in item["text"])
    assert hostile["length"] > len(hostile["text"])
    assert [score["verifier"] for score in hostile["scores"]] == ["math_numeric", "bare_number"]
    assert len(live.live_text({"kind": "completion", "id": hostile["id"]})["text"]) == hostile["length"]


@pytest.mark.parametrize(
    "asked",
    ["../../etc/passwd", "/etc/passwd", "..", "%2e%2e", "x" * 5000, "<script>", "no-such-run", "", 7, True, ["a"]],
)
def test_a_run_that_is_not_one_is_refused_in_one_line(run: SampleRun, live: LiveActions, asked: Any) -> None:
    for function in (live.live_tick, live.live_log, live.live_stop):
        answer = guarded(function)({"run": asked})
        assert set(answer) == {"error"}
        assert "\n" not in answer["error"]


@pytest.mark.parametrize("request_", [None, [], "run", 3, {"cursor": "x"}, {"cursor": {}}, {"cursor": []}])
def test_a_request_of_another_shape_is_read_as_empty(run: SampleRun, live: LiveActions, request_: Any) -> None:
    assert guarded(live.live_tick)(request_)["about"]["id"] == run.folder.run_id


def test_a_cursor_with_values_of_other_types_brings_what_is_there(run: SampleRun, live: LiveActions) -> None:
    cursor = {"metric": "1; DROP TABLE metric", "event": -1, "memory_time": "soon"}
    assert {"charts", "events", "memory"} <= set(guarded(live.live_tick)({"cursor": cursor}))


@pytest.mark.parametrize("group", [None, -1, 0, 10**30, True, "1", 1.5, 999_999])
def test_a_group_that_is_not_one_is_refused(run: SampleRun, live: LiveActions, group: Any) -> None:
    assert guarded(live.live_group)({"group": group}) == {"error": "no such group in this run"}


def test_the_runs_page_lists_filters_and_keeps_quiet(settings: Settings, run: SampleRun) -> None:
    actions = RunsActions(settings)
    first = actions.runs_page({})
    assert [row["name"] for row in first["rows"]] == ["quickstart"]
    assert first["rows"][0]["last"] is not None
    assert first["rows"][0]["size"] > 0
    assert actions.runs_page({"version": first["version"]}) == {"version": first["version"]}
    assert actions.runs_page({"filter": "RUNNING"})["total"] == 1
    assert actions.runs_page({"filter": "no such thing"})["rows"] == []
    run.advance()
    assert actions.runs_page({"version": first["version"]})["rows"][0]["step"] == 4


def test_the_runs_page_shows_fifty_rows_and_a_damaged_run_among_them(settings: Settings) -> None:
    for number in range(PAGE + 2):
        folder = settings.runs_dir / f"20260101-0000{number:02d}-old-0000"
        folder.mkdir()
        (folder / "config.yaml").write_text("steps: [")
    actions = RunsActions(settings)
    page = actions.runs_page({})
    assert (len(page["rows"]), page["total"], page["pages"]) == (PAGE, PAGE + 2, 2)
    assert all(row["problem"] for row in page["rows"])
    assert len(actions.runs_page({"page": 1})["rows"]) == 2


@pytest.mark.parametrize(
    ("mean", "spread", "kind"),
    [
        (0.5, 0.2, "mixed"),
        (1.5, 0.0, "all_good"),
        (0.0, 0.0, "all_bad"),
        (None, None, "unscored"),
        (1.0, None, "unscored"),
        (float("nan"), 0.0, "unscored"),
    ],
)
def test_a_group_is_named_by_its_rewards(mean: float | None, spread: float | None, kind: str) -> None:
    assert kind_of(mean, spread, 1.5) == kind


def test_a_runs_name_comes_out_of_its_id() -> None:
    assert run_name("20261129-235338-my-run-8af2") == "my-run"
    assert run_name("stray") == "stray"
