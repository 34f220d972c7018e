"""The Live and Runs pages' server functions: nothing new means no figure, and no request can leave the runs folder."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from sample_run import SampleRun, begun

from grpo_studio.run_state import RunState
from grpo_studio.settings import Settings, is_loopback
from grpo_studio.ui import frame
from grpo_studio.ui.app import exposure
from grpo_studio.ui.frame import guarded
from grpo_studio.ui.live import LiveActions
from grpo_studio.ui.live_run import LiveRun, run_name
from grpo_studio.ui.live_view import kind_of
from grpo_studio.ui.runs import PAGE, RunsActions


@pytest.fixture
def run(settings: Settings) -> SampleRun:
    return begun(settings.home)


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


def test_the_tile_of_mixed_groups_counts_dead_ones_of_the_same_step(run: SampleRun, live: LiveActions) -> None:
    """A batch is recorded before its step is done: share and counts are then both of the newer batch."""
    run.writer.metrics(run.now + 1, {"group/mixed": 0.25, "group/all_good": 0.5, "group/all_bad": 0.25})
    tile = live.live_tick({})["charts"]["tiles"]["mixed"]
    assert (tile["value"], tile["dead"], tile["good"]) == (0.25, 3, 2)


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


def test_stop_stops_only_the_run_that_is_named(run: SampleRun, live: LiveActions) -> None:
    assert guarded(live.live_stop)({}) == {"error": "no such run"}
    assert not run.folder.stop_request.exists()


def test_any_error_of_a_request_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    def broken(request: Any) -> dict[str, Any]:
        raise KeyError("a\nsecret")

    assert guarded(broken)({}) == {"error": "broken failed: KeyError; the app's log has the details"}
    assert "secret" in caplog.text


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("config.yaml", "algorithm: {steps: x}"),
        ("config.yaml", "no_such_setting: 1"),
        ("config.yaml", "steps: ["),
        ("process.json", "{"),
        ("run.db", "this is no database at all, whatever its name says"),
    ],
)
def test_a_damaged_run_is_a_row_with_its_error_and_hides_no_other(
    settings: Settings, run: SampleRun, live: LiveActions, file: str, text: str
) -> None:
    damaged = SampleRun(settings.home, name="damaged")
    damaged.prepare()
    damaged.writer.close()
    (damaged.folder.path / file).write_text(text)
    rows = {row["name"]: row for row in guarded(RunsActions(settings).runs_page)({})["rows"]}
    assert set(rows) == {"quickstart", "damaged"}
    assert rows["damaged"]["problem"]
    assert "\n" not in rows["damaged"]["problem"]
    assert "problem" not in rows["quickstart"]
    picked = {row["name"]: row["state"] for row in guarded(live.live_runs)({})["runs"]}
    assert picked["quickstart"] == "running"
    answer = guarded(live.live_tick)({"run": damaged.folder.run_id})
    said = answer["strip"]["lost"] if file == "run.db" else answer["error"]  # what is whole of a database is shown
    assert said
    assert "\n" not in said
    assert guarded(live.live_tick)({"run": run.folder.run_id})["about"]["name"] == "quickstart"


def test_a_queue_that_cannot_be_read_leaves_the_other_badges(settings: Settings) -> None:
    settings.queue_path.write_text("this is no database at all, whatever its name says")
    status = frame.status_function(settings)({})
    assert status["device"]
    assert status["queued"] is None
    assert "queue" in status["queue_problem"]


def test_the_live_and_the_runs_page_tell_the_same_change(settings: Settings, live: LiveActions) -> None:
    run = SampleRun(settings.home, steps=2000)
    run.begin()
    with run.writer.transaction():
        for step in range(1, 1202):
            run.writer.metrics(step, {"optim/loss": 0.0, "reward/mean": float(step), "reward/math_numeric/mean": step})
        run.writer.metrics(700, {"memory/peak/loss": 9e9})
    news = live.live_tick({})
    row = RunsActions(settings).runs_page({})["rows"][0]
    tile = news["charts"]["tiles"]["reward"]
    assert (tile["first"], tile["value"]) == (row["first"], row["last"]) == (1.0, 1201.0)
    assert news["charts"]["figures"]["reward"]["data"][0]["x"][0] == 1
    assert news["charts"]["facts"]["verifiers"][0]["mean"] == pytest.approx(1196.5)
    assert news["charts"]["tiles"]["memory"] | {"value": 9e9, "phase": "loss"} == news["charts"]["tiles"]["memory"]


def test_events_say_how_many_there_are_in_all(run: SampleRun, live: LiveActions) -> None:
    for number in range(400):
        run.writer.event("evaluation", str(number))
    news = live.live_tick({})
    assert len(news["events"]) == 300
    assert news["events_total"] > 400


def test_the_colour_scale_begins_at_the_least_reward_that_the_weights_allow(run: SampleRun, live: LiveActions) -> None:
    low, high = live.live_tick({})["groups"]["scale"]
    assert (low, high) == (0.0, 1.5)
    config = run.config.model_copy(update={"rewards": [run.config.rewards[0].model_copy(update={"weight": -2.0})]})
    assert LiveRun(run.folder, config, RunState("running", "")).lowest == -2.0


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("studio.lan", False)],
)
def test_an_address_that_others_can_reach_is_warned_of(settings: Settings, host: str, local: bool) -> None:
    assert is_loopback(host) is local
    assert exposure(replace(settings, host=host)).startswith(f"warning: anyone who can reach {host}:7860 can start")


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
