"""What the pages offer for a run, and their server functions: true to the run's state, and no way round the checks."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sample_run import SampleRun

from grpo_studio import plots
from grpo_studio.checkpoints import Manifest, write_manifest
from grpo_studio.config_files import dump_config
from grpo_studio.job_queue import JobQueue
from grpo_studio.plots.figure import figure, line
from grpo_studio.resume_rules import config_hash, settings_that_matter
from grpo_studio.run_state import RunState
from grpo_studio.settings import Settings
from grpo_studio.store.writer import RunWriter
from grpo_studio.ui.frame import guarded
from grpo_studio.ui.live import LiveActions
from grpo_studio.ui.live_run import config_of
from grpo_studio.ui.run_actions import RunActions
from grpo_studio.ui.run_commands import arguments_for
from grpo_studio.ui.run_menu import actions_of, help_of, limit_field, parent_of
from grpo_studio.ui.run_states import stamp, stamp_of_files, state_of
from grpo_studio.ui.runs import RunsActions

ENDED = ("paused", "stopped", "failed", "killed")


def _run(settings: Settings, name: str = "sample", steps: int = 3) -> SampleRun:
    """A run whose worker is gone."""
    run = SampleRun(settings.home, name=name)
    run.begin()
    run.advance(steps)
    process = run.folder.process()
    assert process is not None
    run.folder.write_process(replace(process, started="gone"))
    return run


def _checkpoint(run: SampleRun, step: int, score: float | None = None, name: str = "") -> None:
    path = run.folder.checkpoints / (name or f"checkpoint-{step}")
    path.mkdir(parents=True)
    (path / "model.safetensors").write_bytes(b"weights")
    matter = settings_that_matter(run.config)
    write_manifest(path, Manifest(step, 1, not name, config_hash(run.config), matter, score=score))


def _allowed(run: SampleRun, state: str, reason: str = "", waits: bool = False) -> dict[str, Any]:
    return actions_of(run.folder, RunState(state, reason), waits)  # type: ignore[arg-type]


def _error(function: Any, request: dict[str, Any]) -> str:
    """The one line that a page gets instead of an answer."""
    answer = guarded(function)(request)
    assert set(answer) == {"error"}, answer
    assert "\n" not in answer["error"]
    return str(answer["error"])


@pytest.mark.parametrize("state", ENDED)
def test_an_ended_run_is_resumed_from_its_newest_checkpoint_or_says_why_not(settings: Settings, state: str) -> None:
    run = _run(settings)
    assert _allowed(run, state)["resume"] == {"allowed": False, "why": "not_saved"}
    assert _allowed(run, state)["branch"]["why"] == "not_saved"
    _checkpoint(run, 2)
    resume = _allowed(run, state)["resume"]
    assert (resume["allowed"], resume["step"], resume["limit"]) == (True, 2, None)
    assert _allowed(run, state)["branch"]["allowed"]
    assert _allowed(run, state)["delete"]["allowed"]


@pytest.mark.parametrize(
    ("state", "waits", "resume", "stop", "cancel", "delete"),
    [
        ("running", False, "not_ended", "", "not_waiting", "running"),
        ("stopping", False, "not_ended", "", "not_waiting", "running"),
        ("queued", True, "not_ended", "waiting", "", "waiting_delete"),
        ("finished", False, "finished", "ended", "not_waiting", ""),
    ],
)
def test_each_state_has_its_own_reasons(
    settings: Settings, state: str, waits: bool, resume: str, stop: str, cancel: str, delete: str
) -> None:
    run = _run(settings)
    _checkpoint(run, 2)
    found = _allowed(run, state, waits=waits)
    names = ("resume", "stop", "cancel", "delete")
    assert [found[name]["why"] for name in names] == [resume, stop, cancel, delete]
    assert all(found[name]["allowed"] is (found[name]["why"] == "") for name in found)


def test_a_run_that_says_it_waits_and_is_in_no_queue_can_be_put_there(settings: Settings) -> None:
    found = _allowed(_run(settings), "queued", waits=False)
    assert found["resume"]["allowed"]
    assert not found["cancel"]["allowed"]
    assert help_of(RunState("queued", ""), found) == "in_no_queue"


def test_final_weights_alone_are_exported_but_not_trained_on(settings: Settings) -> None:
    run = _run(settings)
    _checkpoint(run, 3, name="final")
    found = _allowed(run, "finished")
    assert found["branch"] == {"allowed": False, "why": "final_only"}
    assert found["export"]["allowed"]


@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        ("paused", "the disk / has 3 MB free, and checkpoint-3 needs 20 MB; make room", "disk"),
        ("paused", "the disk was full, last step 3; make room on it first", "disk"),
        ("stopped", "the limit of 2 hours is reached after step 3 (2 h); raise limits.hours and resume", "limit"),
        ("paused", "90% of completions were abstained on; mend it, or raise limits.abstained above 0.5", "abstained"),
        ("killed", "killed by signal 9 (SIGKILL, likely out of memory: use a smaller memory.micro_batch)", "memory"),
        ("killed", "the worker ended without a word, see its log", "killed"),
        ("failed", "the loss is not finite at step 3", "failed"),
        ("stopped", "stopped on request after step 3", "stopped"),
        ("running", "", ""),
        ("finished", "all 3 steps done", ""),
    ],
)
def test_after_each_end_the_page_knows_what_to_say(settings: Settings, state: str, reason: str, words: str) -> None:
    run = _run(settings)
    _checkpoint(run, 2)
    assert help_of(RunState(state, reason), _allowed(run, state, reason)) == words  # type: ignore[arg-type]


def test_a_limit_that_ended_the_run_is_asked_for_anew(settings: Settings) -> None:
    run = _run(settings)
    limits = run.config.limits.model_copy(update={"hours": 2.0, "abstained": 0.7})
    run.folder.config_path_of(2).write_text(dump_config(run.config.model_copy(update={"limits": limits})))
    hours = limit_field(run.folder, RunState("stopped", "the limit of 2 hours is reached; raise limits.hours"))
    assert hours is not None
    assert (hours["field"], hours["value"], hours["suggested"]) == ("limits.hours", 2.0, 4.0)
    share = limit_field(run.folder, RunState("paused", "too many completions were abstained on"))
    assert share is not None
    assert (share["field"], share["suggested"]) == ("limits.abstained", 1.0)
    assert limit_field(run.folder, RunState("stopped", "raise limits.tokens and resume")) is None, "it is not set"
    assert limit_field(run.folder, RunState("failed", "limits.hours was no number")) is None


def test_settings_of_a_new_attempt_are_seen(settings: Settings) -> None:
    run = _run(settings)
    assert config_of(run.folder.path).limits.hours is None
    before = stamp(run.folder)
    limits = run.config.limits.model_copy(update={"hours": 4.0})
    run.folder.config_path_of(2).write_text(dump_config(run.config.model_copy(update={"limits": limits})))
    assert config_of(run.folder.path).limits.hours == 4.0
    assert stamp(run.folder) != before


def test_a_new_attempt_and_a_new_checkpoint_change_what_is_remembered(settings: Settings) -> None:
    run = _run(settings)
    run.end("run_stopped", "stopped on request after step 3")
    assert state_of(run.folder).state == "stopped"
    files = stamp_of_files(run.folder)
    _checkpoint(run, 2)
    assert stamp_of_files(run.folder) != files
    RunWriter(run.folder.database, 2).attempt_began(2, "checkpoint-2", "goes on after step 2")
    assert state_of(run.folder).state == "queued"


def test_rows_past_the_checkpoint_leave_the_page_with_the_resume_itself(settings: Settings) -> None:
    run, live = _run(settings, steps=6), LiveActions(settings)
    run.end("run_stopped", "stopped on request after step 6")
    before = live.live_tick({"run": run.folder.run_id})
    assert (before["strip"]["attempt"], before["strip"]["step"], before["groups"]["last"]) == (1, 6, 6)
    RunWriter(run.folder.database, 2).attempt_began(4, "checkpoint-4", "goes on after step 4")
    after = live.live_tick({"run": run.folder.run_id, "cursor": before["cursor"]})
    assert (after["strip"]["attempt"], after["strip"]["from_step"], after["strip"]["step"]) == (2, 4, 4)
    assert after["groups"]["last"] == 4
    reward = after["charts"]["figures"]["reward"]
    assert reward["data"][-2]["x"][-1] == 4
    assert [(shape["x0"], shape["x1"]) for shape in reward["layout"]["shapes"]] == [(4, 4)]
    assert [event["kind"] for event in after["events"]] == ["attempt_began"]
    assert live.live_tick({"run": run.folder.run_id, "cursor": after["cursor"]}) == {"cursor": after["cursor"]}


@pytest.mark.parametrize(
    ("starts", "seen"),
    [
        ([(1, 0)], []),
        ([(1, 5)], []),  # a branch: there is nothing before it to be told apart
        ([(1, 0), (2, 5), (3, 9)], [5, 9]),
        ([(1, 0), (2, 5), (3, 5)], [5, 5]),
        ([(1, 0), (2, 8), (3, 5)], [5]),
        ([(1, 0), (2, 0)], []),
    ],
)
def test_a_line_for_each_attempt_that_is_still_seen(starts: list[tuple[int, int]], seen: list[int]) -> None:
    drawn = plots.with_attempts(figure("run", [line([1, 2], [0.1, 0.2], "x", "red")]), starts, "attempt {attempt}")
    assert [shape["x0"] for shape in drawn["layout"].get("shapes", [])] == seen
    assert [note["x"] for note in drawn["layout"].get("annotations", [])] == sorted(set(seen))


def test_the_menu_lists_checkpoints_newest_first_and_is_json(settings: Settings) -> None:
    run = _run(settings)
    _checkpoint(run, 1, score=0.5)
    _checkpoint(run, 2, score=0.25)
    _checkpoint(run, 3, name="final")
    (run.folder.checkpoints / "checkpoint-9").mkdir()
    menu = RunActions(settings).run_menu({"run": run.folder.run_id})
    json.dumps(menu, allow_nan=False)
    rows = [(row["asked"], row["best"], row["resumable"]) for row in menu["checkpoints"]]
    assert rows == [("final", False, False), ("2", False, True), ("1", True, True)]
    assert menu["size"] > 0


def test_a_damaged_run_can_still_be_deleted(settings: Settings) -> None:
    run, actions = _run(settings, "damaged"), RunActions(settings)
    run.writer.close()
    run.folder.database.write_bytes(b"no database at all" * 100)
    for name in ("run.db-wal", "run.db-shm"):
        (run.folder.path / name).unlink(missing_ok=True)
    menu = actions.run_menu({"run": run.folder.run_id})
    assert menu["actions"]["delete"]["allowed"]
    assert "whole id" in _error(actions.run_delete, {"run": run.folder.run_id, "sure": True})
    assert actions.run_delete({"run": run.folder.run_id, "sure": run.folder.run_id}) == {"ok": True}
    assert not run.folder.path.exists()


def test_what_changes_a_run_needs_its_whole_id(settings: Settings) -> None:
    run, actions = _run(settings, "only-one"), RunActions(settings)
    run.end("run_stopped", "stopped on request after step 3")
    for function in (actions.run_resume, actions.run_cancel, actions.run_delete, actions.run_branch_changes):
        for asked in ("only-one", "latest", "../only-one", "", None, ["x"], "x" * 1000):
            assert _error(function, {"run": asked, "checkpoint": "2", "sure": asked})
    assert run.folder.path.is_dir()


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([["algorithm.steps", "30"], ["algorithm.learning_rate", "3e-4"]], None),
        ([["algorithm.stepz", "30"]], "algorithm.stepz"),
        ([["algorithm.learning_rate", "fast"]], "algorithm.learning_rate"),
        ([["algorithm.steps", "2"]], "algorithm.steps"),
        ([["model.id", "other/model"]], "model"),
        ([["--set", "x"]], "names no setting"),
        ([["a.b=c;rm -rf /", "x"]], "names no setting"),
        ([["algorithm.steps", 30]], "no setting"),
        ([["algorithm.steps", "9" * 30_000]], "characters"),
        ([["algorithm.steps", "1"]] * 100, "at most"),
        ("algorithm.steps=30", "no list"),
    ],
)
def test_a_branch_shows_its_difference_or_says_what_is_wrong(settings: Settings, rows: Any, told: str | None) -> None:
    run = _run(settings)
    _checkpoint(run, 2)
    actions = RunActions(settings)
    request = {"run": run.folder.run_id, "checkpoint": "2", "set": rows}
    if told is not None:
        assert told in _error(actions.run_branch_changes, request)
        return
    answer = actions.run_branch_changes(request)
    assert answer["step"] == 2
    assert [(one["field"], one["after"]) for one in answer["changes"]] == [
        ("algorithm.steps", "30"),
        ("algorithm.learning_rate", "0.0003"),
    ]


def test_the_branch_form_offers_what_a_branch_may_change(settings: Settings) -> None:
    run, actions = _run(settings), RunActions(settings)
    assert "no checkpoint" in _error(actions.run_branch_form, {"run": run.folder.run_id})
    _checkpoint(run, 2)
    _checkpoint(run, 3, name="final")
    form = actions.run_branch_form({"run": run.folder.run_id})
    assert [row["name"] for row in form["checkpoints"]] == ["checkpoint-2"]
    values = {field["name"]: field["value"] for field in form["fields"]}
    assert values["algorithm.steps"] == "60"
    assert values["rewards.1.weight"] == "0.5"
    assert not [name for name in values if name.startswith("model.") or name in ("memory.adapter", "alerts")]
    rows = [[field["name"], field["value"]] for field in form["fields"]]
    for part in (rows[:60], rows[60:]):  # typed as they are offered, they change nothing
        request = {"run": run.folder.run_id, "checkpoint": "2", "set": part}
        assert actions.run_branch_changes(request)["changes"] == []


def test_visitors_cannot_branch_onto_files_of_this_machine(settings: Settings) -> None:
    run = _run(settings)
    _checkpoint(run, 2)
    open_to_others = RunActions(replace(settings, host="0.0.0.0"))
    rows = [["dataset.source", "/etc/passwd.jsonl"]]
    request = {"run": run.folder.run_id, "checkpoint": "2", "set": rows}
    for function in (open_to_others.run_branch_changes, open_to_others.run_branch):
        assert "outside the folders" in _error(function, request)


@pytest.mark.parametrize("text", ["", "changes", "[1]", '{"run": 3}', '{"run"', "x" * (2 << 20), "[" * 100_000])
def test_a_damaged_branch_file_makes_no_parent(settings: Settings, text: str) -> None:
    run = SampleRun(settings.home)
    (run.folder.path / "branch.json").write_text(text)
    assert parent_of(run.folder) is None


def test_a_branch_tells_where_it_comes_from(settings: Settings) -> None:
    parent, run = SampleRun(settings.home, name="parent"), SampleRun(settings.home, name="child")
    changes = [{"field": "algorithm.steps", "before": 60, "after": 90}, {"field": "<b>", "before": None, "after": [1]}]
    told = {"run": parent.folder.run_id, "checkpoint": "checkpoint-5", "step": 5, "changes": [*changes, "?"]}
    (run.folder.path / "branch.json").write_text(json.dumps(told))
    found = parent_of(run.folder)
    assert found is not None
    assert (found["name"], found["step"], found["here"]) == ("parent", 5, True)
    assert [one["after"] for one in found["changes"]] == ["90", "[1]", ""]
    told["run"] = "../../etc"
    (run.folder.path / "branch.json").write_text(json.dumps(told))
    outside = parent_of(run.folder)
    assert outside is not None
    assert not outside["here"]
    row = next(row for row in RunsActions(settings).runs_page({})["rows"] if row["id"] == run.folder.run_id)
    assert row["parent"]["run"] == "../../etc"


def test_the_queue_is_listed_in_order_moved_and_cancelled(settings: Settings) -> None:
    runs = [SampleRun(settings.home, name=f"run-{n}") for n in range(3)]
    queue, actions, page = JobQueue(settings.queue_path), RunActions(settings), RunsActions(settings)
    for run in runs:
        queue.add(run.folder.path)
    queue.take(runs[0].folder.path, ["cpu"])
    queue.add(Path("/elsewhere/runs/20260101-000000-theirs-0000"))
    first = page.runs_page({})
    places = [(row["name"], row["place"], row["run"] is None) for row in first["queue"]]
    assert places == [("run-0", 0, False), ("run-1", 1, False), ("run-2", 2, False), ("theirs", 3, True)]
    actions.run_move({"run": runs[2].folder.run_id, "place": 1})
    second = page.runs_page({"version": first["version"]})
    assert [row["name"] for row in second["queue"]] == ["run-0", "run-2", "run-1", "theirs"]
    for place in (0, -1, 9, "1", None, True):
        assert "place" in _error(actions.run_move, {"run": runs[1].folder.run_id, "place": place})
    actions.run_cancel({"run": runs[2].folder.run_id})
    assert state_of(runs[2].folder).state == "stopped"
    assert runs[2].folder.run_id in _error(actions.run_cancel, {"run": runs[2].folder.run_id})
    version = page.runs_page({})["version"]
    assert page.runs_page({"version": version}) == {"version": version}


def test_a_queue_that_cannot_be_read_costs_the_list_nothing(settings: Settings) -> None:
    SampleRun(settings.home)
    settings.queue_path.write_bytes(b"no database at all" * 100)
    answer = RunsActions(settings).runs_page({})
    assert len(answer["rows"]) == 1
    assert "damaged" in answer["queue_problem"]


def test_a_row_counts_checkpoints_and_what_an_export_adds(settings: Settings) -> None:
    run, page = _run(settings), RunsActions(settings)
    run.end("run_stopped", "stopped on request after step 3")
    before = page.runs_page({})["rows"][0]
    _checkpoint(run, 2)
    (run.folder.exports / "weights").mkdir(parents=True)
    (run.folder.exports / "weights" / "model").write_bytes(b"x" * 50_000)
    after = page.runs_page({})["rows"][0]
    assert (before["checkpoints"], after["checkpoints"]) == (0, 1)
    assert after["size"] >= before["size"] + 50_000


def test_slow_work_is_a_command_whose_arguments_cannot_be_bent(settings: Settings) -> None:
    run = _run(settings)
    name, exports = run.folder.run_id, run.folder.exports
    of = {"run": name, "checkpoint": "2"}
    _checkpoint(run, 2)
    assert arguments_for(of | {"kind": "evaluate"}, settings) == ["evaluate", "--checkpoint=2", "--", name]
    merged = arguments_for(of | {"kind": "export", "what": "merged"}, settings)
    assert merged == ["export", f"--to={exports / 'merged-step-2'}", "--merge", "--checkpoint=2", "--", name]
    (exports / "script").mkdir(parents=True)
    script = arguments_for(of | {"kind": "export", "what": "script"}, settings)
    assert script == ["export", f"--to={exports / 'script-2'}", "--script", "--", name]
    pushed = arguments_for(of | {"kind": "push", "repository": "me/model"}, settings)
    assert pushed == ["push", "--to=me/model", "--checkpoint=2", "--private", "--", name]
    brought = arguments_for({"kind": "import", "path": "--help"}, settings)
    assert brought == ["import", "--", str(Path.cwd() / "--help")]


@pytest.mark.parametrize(
    "request_",
    [
        {"kind": "delete"},
        {"kind": None},
        {"kind": "export", "what": "--to=/etc", "checkpoint": "2"},
        {"kind": "export", "what": "weights", "checkpoint": "../../x"},
        {"kind": "export", "what": "weights", "checkpoint": "-1"},
        {"kind": "export", "what": "weights"},
        {"kind": "evaluate", "checkpoint": "--help"},
        {"kind": "push", "checkpoint": "2", "repository": "--private"},
        {"kind": "push", "checkpoint": "2", "repository": "a/b/../c"},
        {"kind": "import", "path": ""},
        {"kind": "import", "path": "a\0b"},
        {"kind": "import"},
    ],
)
def test_a_request_that_is_no_command_is_refused(settings: Settings, request_: dict[str, Any]) -> None:
    run = _run(settings)
    assert _error(RunActions(settings).run_command, {"key": "key-12345", "run": run.folder.run_id} | request_)


def test_visitors_import_from_open_folders_alone_and_push_nothing(settings: Settings) -> None:
    run, actions = _run(settings), RunActions(replace(settings, host="0.0.0.0"))
    for path in ("/etc/passwd", "../../etc/passwd", "~root/x", str(settings.home / ".." / "x")):
        assert "outside the folders" in _error(
            actions.run_command, {"key": "key-12345", "kind": "import", "path": path}
        )
    push = {"key": "key-12345", "kind": "push", "run": run.folder.run_id, "checkpoint": "2", "repository": "me/model"}
    assert "visitors cannot push" in _error(actions.run_command, push)


def test_a_command_that_fails_tells_its_own_reason(settings: Settings) -> None:
    actions = RunActions(settings)
    archive = settings.home / "run.tar.gz"
    archive.write_bytes(b"no archive")
    actions.run_command({"key": "key-12345", "kind": "import", "path": str(archive)})
    while (answer := actions.run_command_progress({"key": "key-12345"}))["state"] == "running":
        time.sleep(0.05)
    assert answer["state"] == "failed"
    assert str(archive) in answer["message"]
