"""The state of a run: a pure function of events and process."""

from __future__ import annotations

import pytest

from grpo_studio.exit_codes import NOT_RECORDED, NOT_RECORDED_DISK_FULL
from grpo_studio.run_state import RECORDS_LOST, RunFacts, State, derive

CREATED = ("run_created", "created")
STARTED = ("training_started", "go")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (RunFacts([CREATED], started=False, alive=False), "queued"),
        (RunFacts([CREATED], started=True, alive=True), "preparing"),
        (RunFacts([CREATED, STARTED], started=True, alive=True, step=3), "running"),
        (RunFacts([CREATED, STARTED], started=True, alive=True, step=3, stop_requested=True), "stopping"),
        (RunFacts([STARTED, ("run_finished", "all")], started=True, alive=True, step=3), "stopping"),
        (RunFacts([STARTED, ("run_finished", "all")], started=True, alive=False, step=3), "finished"),
        (RunFacts([STARTED, ("run_finished", "all")], started=True, alive=False, step=0), "failed"),
        (RunFacts([STARTED, ("run_stopped", "asked")], started=True, alive=False, step=3), "stopped"),
        (RunFacts([STARTED, ("run_failed", "why")], started=True, alive=False, step=3), "failed"),
        (RunFacts([STARTED, ("run_paused", "disk")], started=True, alive=False, step=3), "paused"),
        (RunFacts([STARTED], started=True, alive=False, step=3, exit_code=-9, signal=9), "killed"),
        (RunFacts([], started=True, alive=False), "killed"),
        (RunFacts([CREATED, ("run_stopped", "cancelled")], started=False, alive=False), "stopped"),
    ],
)
def test_state(facts: RunFacts, expected: State) -> None:
    assert derive(facts).state == expected


def test_killed_says_signal_likely_cause_and_last_step() -> None:
    reason = derive(RunFacts([STARTED], started=True, alive=False, step=7, exit_code=-9, signal=9)).reason
    assert "signal 9" in reason
    assert "out of memory" in reason
    assert "last step 7" in reason


def test_killed_after_a_stop_request_does_not_blame_memory() -> None:
    facts = RunFacts([STARTED], started=True, alive=False, step=7, exit_code=-9, signal=9, stop_requested=True)
    assert "memory" not in derive(facts).reason


def test_preparing_tells_what_is_being_done() -> None:
    facts = RunFacts([("preparing", "reading"), ("preparing", "loading")], started=True, alive=True)
    assert derive(facts).reason == "loading"


def test_killed_names_the_last_checkpoint() -> None:
    killed = RunFacts([STARTED], started=True, alive=False, step=7, signal=9, checkpoint="checkpoint-5 saved")
    assert "checkpoint-5 saved" in derive(killed).reason
    assert "no checkpoint" in derive(RunFacts([STARTED], started=True, alive=False, step=7, signal=9)).reason


def test_a_stop_that_meets_the_worker_before_it_listens_is_a_stop() -> None:
    assert derive(RunFacts([], started=True, alive=False, stop_requested=True, signal=15)).state == "stopped"


def test_a_record_that_cannot_be_read_is_said_so() -> None:
    assert "malformed" in derive(RunFacts([], started=True, alive=False, trouble="run.db is malformed")).reason


def ended(**facts: object) -> RunFacts:
    return RunFacts(**({"events": [STARTED], "started": True, "alive": False, "step": 7} | facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "state", "words"),
    [
        (ended(signal=9, checkpoint="checkpoint-5 saved"), "killed", "; resume goes on after step 5"),
        (ended(signal=9), "killed", "; no checkpoint was saved: start the run again"),
        (ended(signal=9, step=0), "killed", "before its first step; start the run again"),
        (ended(signal=9, from_step=5), "killed", "; resume goes on after step 5"),
        (ended(signal=9, checkpoint="final weights saved in checkpoints/final"), "killed", "; the weights are whole"),
        (ended(signal=6), "killed", "SIGABRT, a library gave up, which it also does when memory runs out"),
        (ended(signal=11), "killed", "SIGSEGV, a fault in a library"),
        (ended(signal=15), "killed", "SIGTERM, ended from outside"),
        (ended(signal=64), "killed", "signal 64"),
        (ended(signal=999), "killed", "signal 999 (unknown)"),
        (ended(exit_code=3), "killed", "without a word (exit code 3), see its log, last step 7; no checkpoint"),
        (
            ended(rebooted=True, checkpoint="checkpoint-5 saved"),
            "killed",
            "the machine went down with the worker, last step 7",
        ),
        (ended(rebooted=True, signal=9), "killed", "signal 9"),
        (
            ended(exit_code=NOT_RECORDED_DISK_FULL),
            "paused",
            "the disk was full, last step 7; make room on it first; no",
        ),
        (
            ended(exit_code=NOT_RECORDED),
            "failed",
            "run.db could not be written, last step 7, see the log; no checkpoint",
        ),
        (
            ended(exit_code=0, events=[(RECORDS_LOST, "all is lost")]),
            "stopped",
            "ended by itself, last step 7, how is lost; all is lost",
        ),
    ],
)
def test_each_reason_says_what_to_do_next(facts: RunFacts, state: State, words: str) -> None:
    derived = derive(facts)
    assert derived.state == state
    assert words in derived.reason


@pytest.mark.parametrize("kind", ["run_paused", "run_failed"])
def test_the_fix_of_a_message_stays_and_resume_is_added(kind: str) -> None:
    saved = {"checkpoint": "checkpoint-5 saved"}
    assert derive(ended(events=[(kind, "why; mend it")])).reason == "why; mend it"
    assert derive(ended(events=[(kind, "why")])).reason == "why; no checkpoint was saved: start the run again"
    assert derive(ended(events=[(kind, "why")], **saved)).reason == "why; resume goes on after step 5"
    assert (
        derive(ended(events=[(kind, "why; mend it")], **saved)).reason
        == "why; mend it, then resume, which goes on after step 5"
    )


def test_a_finished_run_with_a_damaged_record_is_finished_and_says_so() -> None:
    state = derive(ended(events=[("run_finished", "all 7 steps done"), (RECORDS_LOST, "about 9 rows are lost")]))
    assert (state.state, state.reason) == ("finished", "all 7 steps done; about 9 rows are lost")


def test_a_run_whose_first_events_are_lost_still_runs() -> None:
    assert derive(RunFacts([], started=True, alive=True, step=3)).state == "running"


def test_a_fix_that_says_how_to_go_on_is_not_told_to_resume_besides() -> None:
    saved = {"started": True, "alive": False, "step": 7, "checkpoint": "checkpoint-5 saved"}
    broken = [("run_failed", "checkpoint-5 cannot be read; branch from an earlier one")]
    assert derive(RunFacts(events=broken, **saved)).reason == broken[0][1]
    full = [("run_paused", "the disk is full; free 3 MB")]
    assert derive(RunFacts(events=full, **saved)).reason.endswith("free 3 MB, then resume, which goes on after step 5")
