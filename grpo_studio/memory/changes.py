"""Which settings would make a run fit its card: each candidate forecast anew, those that keep the update first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.memory.calibrated import Calibrated
from grpo_studio.memory.change_candidates import CANDIDATES, Candidate
from grpo_studio.memory.forecast import Change
from grpo_studio.memory.phase_bytes import peak, phases
from grpo_studio.memory.plan import Measured, Plan
from grpo_studio.rules import inspect

MOST = 5
PAIRED = 5
"""Candidates that are tried two by two when none is enough alone: those that save most."""
Measure = Callable[[RunConfig], tuple[Plan, Measured]]
"""A configuration's plan and parts."""


@dataclass(frozen=True)
class Tried:
    """A candidate as it was forecast for a run."""

    candidate: Candidate
    change: Change
    plan: Plan
    measured: Measured = field(repr=False)

    @property
    def estimated(self) -> bool:
        """Whether the model was not traced with it."""
        return isinstance(self.measured, Calibrated)


def changes_for(plan: Plan, measured: Measured, total: int, measure: Measure) -> Sequence[Tried]:
    """At most five changes that lower the peak, those that fit first; empty without a card or when the run fits.

    They are tried from the smallest intervention on, and no more of them once five fit. When none fits alone, pairs are
    tried; when no pair does either, those that come closest are told.
    """
    if plan.card is None or total <= plan.card.bytes:
        return ()
    trial = _Trial(plan.config, plan.card.bytes, measure)
    tried = [one for one in trial.all_of(plan, measured) if one.change.total_bytes < total]
    closest = sorted(tried, key=lambda one: one.change.total_bytes)
    if not any(one.change.fits for one in tried):
        tried = list(trial.pairs([one for one in tried if one in closest[:PAIRED]]))
    fitting = sorted((one for one in tried if one.change.fits), key=lambda one: not one.change.keeps)
    return (fitting or closest)[:MOST]


class _Trial:
    """Tries candidates on plans of one run."""

    def __init__(self, config: RunConfig, room: int, measure: Measure) -> None:
        self._room, self._measure = room, measure
        self._wrong_before = {problem.field for problem in inspect(config.model_dump(mode="json")).problems}

    def all_of(self, plan: Plan, measured: Measured) -> Iterator[Tried]:
        fitting = 0
        for candidate in CANDIDATES:
            if fitting < MOST and (one := self._one(plan, measured, candidate, {})) is not None:
                fitting += bool(one.change.fits)
                yield one

    def pairs(self, tried: Sequence[Tried]) -> Iterator[Tried]:
        """Each of these with one that comes after it, which then sees what the first has changed."""
        for place, first in enumerate(tried):
            for second in tried[place + 1 :]:
                if set(first.change.settings) & set(second.change.settings):
                    continue
                both = self._one(first.plan, first.measured, second.candidate, first.change.settings)
                if both is not None:
                    keeps = first.candidate.keeps and second.candidate.keeps
                    yield replace(both, change=replace(both.change, keeps=keeps))

    def _one(self, plan: Plan, measured: Measured, candidate: Candidate, before: Mapping[str, Any]) -> Tried | None:
        proposed = candidate.propose(plan, measured)
        changed = None if proposed is None else self._with(plan.config, proposed)
        if proposed is None or changed is None:
            return None
        new_plan, new_measured = self._measure(changed)
        backend = changed.memory.loss_backend
        if backend not in new_measured.backends:
            return None
        total = peak(phases(new_plan, new_measured, backend, new_plan.micro_batch))
        change = Change({**before, **proposed}, candidate.keeps, total, total <= self._room)
        return Tried(candidate, change, new_plan, new_measured)

    def _with(self, config: RunConfig, settings: Mapping[str, Any]) -> RunConfig | None:
        """With other values by dotted name; None when that would be wrong where it was right before."""
        data = config.model_dump(mode="json")
        for name, value in settings.items():
            section, _, key = name.partition(".")
            data[section][key] = value
        inspected = inspect(data)
        wrong = {problem.field for problem in inspected.problems}
        return inspected.config if wrong <= self._wrong_before else None
