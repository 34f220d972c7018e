"""The state of a run, derived from its recorded events and its process: a pure function, no guess from file times."""

from __future__ import annotations

import re
import signal as signals
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from grpo_studio.exit_codes import NOT_RECORDED, NOT_RECORDED_DISK_FULL

State = Literal["queued", "preparing", "running", "paused", "stopping", "finished", "stopped", "failed", "killed"]

TERMINAL: dict[str, State] = {
    "run_finished": "finished",
    "run_stopped": "stopped",
    "run_failed": "failed",
    "run_paused": "paused",
}
RECORDS_LOST = "records_lost"
"""An event that says what of a damaged record cannot be read any more."""
LIKELY: dict[int, str] = {
    signals.SIGKILL: ", likely out of memory: use a smaller memory.micro_batch (`forecast` names the largest)",
    signals.SIGABRT: ", a library gave up, which it also does when memory runs out: see the log",
    signals.SIGBUS: ", memory or disk ran out: see the log",
    signals.SIGSEGV: ", a fault in a library: see the log",
    signals.SIGTERM: ", ended from outside",
    signals.SIGHUP: ", ended from outside",
    signals.SIGINT: ", ended from outside",
}
"""What a signal that nobody asked for here most likely says."""
ENDED: frozenset[State] = frozenset({"finished", "stopped", "failed", "killed", "paused"})


@dataclass(frozen=True)
class RunFacts:
    """What is known about the newest attempt.

    Args:
        events: (kind, message) in order of their making.
        started: a worker was started for it.
        alive: that worker still runs.
        stop_requested: somebody asked it to stop.
        step: last recorded step, 0 for none.
        exit_code, signal: how the worker ended, when its parent saw it.
        checkpoint: what the newest checkpoint event says, None when nothing was saved.
        from_step: the step after which the newest attempt begins, 0 for the first.
        rebooted: the machine was started anew since that worker began.
        trouble: why the recorded events cannot be read, empty when they can.
    """

    events: Sequence[tuple[str, str]]
    started: bool
    alive: bool
    stop_requested: bool = False
    step: int = 0
    exit_code: int | None = None
    signal: int | None = None
    checkpoint: str | None = None
    from_step: int = 0
    trouble: str = ""
    rebooted: bool = False


@dataclass(frozen=True)
class RunState:
    state: State
    reason: str

    @property
    def ended(self) -> bool:
        return self.state in ENDED


def derive(facts: RunFacts) -> RunState:
    """The state and, in words, why. A terminal event decides; without one a dead process was killed."""
    terminal = next(((kind, message) for kind, message in reversed(facts.events) if kind in TERMINAL), None)
    if terminal is not None:
        kind, message = terminal
        if facts.alive:
            return RunState("stopping", f"ending: {message}")
        if kind == "run_finished" and facts.step == 0:
            return RunState("failed", f"ended without a single step{_lost(facts)}")
        return RunState(TERMINAL[kind], _with_what_next(facts, kind, f"{message}{_lost(facts)}"))
    if not facts.started:
        onward = f", to go on after step {facts.from_step}" if facts.from_step else ""
        return RunState("queued", f"waits for its turn{onward}")
    if not facts.alive:
        return _without_a_word(facts)
    if facts.stop_requested:
        return RunState("stopping", "finishes the step, then saves a checkpoint")
    if facts.step > facts.from_step or any(kind == "training_started" for kind, _ in facts.events):
        return RunState("running", "")
    last = next((message for kind, message in reversed(facts.events) if kind == "preparing"), "starting the worker")
    return RunState("preparing", last)


def _without_a_word(facts: RunFacts) -> RunState:
    """A worker that is gone and left no terminal event."""
    if facts.stop_requested and facts.signal == signals.SIGTERM and facts.step == 0:
        return RunState("stopped", "stopped on request as it began")
    where = f"last step {facts.step}" if facts.step else "before its first step"
    if facts.checkpoint:
        where += f", {facts.checkpoint}"
    after = f"{_lost(facts)}{_onward(facts)}"
    if facts.exit_code == NOT_RECORDED_DISK_FULL:
        return RunState("paused", f"the disk was full, {where}; make room on it first{after}")
    if facts.exit_code == NOT_RECORDED:
        return RunState("failed", f"run.db could not be written, {where}, see the log{after}")
    if facts.exit_code == 0 and _lost(facts):
        return RunState("stopped", f"ended by itself, {where}, how is lost{after}")
    if facts.trouble:
        return RunState("killed", f"ended, and what it recorded cannot be read: {facts.trouble}")
    return RunState("killed", f"{_killed_by(facts)}, {where}{after}")


def _killed_by(facts: RunFacts) -> str:
    if facts.signal is None and facts.rebooted:
        return "the machine went down with the worker"
    if facts.signal is None:
        code = "" if facts.exit_code is None else f" (exit code {facts.exit_code})"
        return f"the worker ended without a word{code}, see its log"
    hint = "" if facts.stop_requested else LIKELY.get(facts.signal, "")
    return f"killed by signal {facts.signal} ({_signal_name(facts.signal)}{hint})"


def _with_what_next(facts: RunFacts, kind: str, reason: str) -> str:
    """A reason that names a fix keeps it; that the run can go on is added to it."""
    if kind not in ("run_paused", "run_failed"):
        return reason
    if "; " not in reason:
        return f"{reason}{_onward(facts)}"
    step, fix = _resumes_after(facts), reason.rpartition("; ")[2]
    if step is None or re.search(r"\b(resume|branch)", fix):
        return reason
    return f"{reason}, then resume, which goes on after step {step}"


def _onward(facts: RunFacts) -> str:
    """What to do next, after the last `; ` of a reason."""
    step = _resumes_after(facts)
    if step is not None:
        return f"; resume goes on after step {step}"
    if facts.checkpoint:
        return "; the weights are whole: evaluate or export them"
    return "; no checkpoint was saved: start the run again" if facts.step else "; start the run again"


def _resumes_after(facts: RunFacts) -> int | None:
    saved = re.match(r"checkpoint-([0-9]+) ", facts.checkpoint or "")
    return int(saved[1]) if saved else facts.from_step or None


def _lost(facts: RunFacts) -> str:
    """What of the record is lost, when it was damaged."""
    return next((f"; {message}" for kind, message in reversed(facts.events) if kind == RECORDS_LOST), "")


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return "unknown"
