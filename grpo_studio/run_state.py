"""The state of a run, derived from its recorded events and its process: a pure function, no guess from file times."""

from __future__ import annotations

import signal as signals
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

State = Literal["queued", "preparing", "running", "paused", "stopping", "finished", "stopped", "failed", "killed"]

TERMINAL: dict[str, State] = {
    "run_finished": "finished",
    "run_stopped": "stopped",
    "run_failed": "failed",
    "run_paused": "paused",
}
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
            return RunState("failed", "ended without a single step")
        return RunState(TERMINAL[kind], message)
    if not facts.started:
        onward = f", to go on after step {facts.from_step}" if facts.from_step else ""
        return RunState("queued", f"waits for its turn{onward}")
    if not facts.alive:
        if facts.stop_requested and facts.signal == signals.SIGTERM and facts.step == 0:
            return RunState("stopped", "stopped on request as it began")
        return RunState("killed", _killed_reason(facts))
    if facts.stop_requested:
        return RunState("stopping", "finishes the step, then saves a checkpoint")
    if any(kind == "training_started" for kind, _ in facts.events):
        return RunState("running", "")
    last = next((message for kind, message in reversed(facts.events) if kind == "preparing"), "starting the worker")
    return RunState("preparing", last)


def _killed_reason(facts: RunFacts) -> str:
    where = f"last step {facts.step}" if facts.step else "before its first step"
    saved = f"; {facts.checkpoint}" if facts.checkpoint else "; no checkpoint was saved"
    if facts.trouble:
        return f"ended, and what it recorded cannot be read: {facts.trouble}"
    if facts.signal is not None:
        hint = ", likely out of memory" if facts.signal == signals.SIGKILL and not facts.stop_requested else ""
        return f"killed by signal {facts.signal} ({_signal_name(facts.signal)}{hint}), {where}{saved}"
    if facts.exit_code is not None:
        return f"the worker ended without a word (exit code {facts.exit_code}), {where}{saved}; see its log"
    return f"the worker is gone without a word, {where}{saved}; see its log"


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return "unknown"
