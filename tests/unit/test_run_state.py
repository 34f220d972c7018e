"""The state of a run: a pure function of events and process."""

from __future__ import annotations

import pytest

from grpo_studio.run_state import RunFacts, State, derive

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
