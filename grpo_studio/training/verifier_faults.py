"""What goes wrong with verifiers in a run: the first trouble of each kind is told, and too many abstentions pause it.

A broken grader is a fault of the machinery, never a batch of zeros: training on would only burn time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grpo_studio.store.records import GroupRecord
from grpo_studio.store.writer import RunWriter

WINDOW_PROMPTS = 8
"""Abstentions come by the prompt (one bad gold costs its whole group), so a share is taken over this many at least."""
TOLD = {
    "abstained": ("verifier_trouble", "warning", "first abstention"),
    "timeout": ("verifier_trouble", "warning", "first time-out"),
    "error": ("verifier_trouble", "warning", "first error"),
    "wrong_type": ("verifier_trouble", "error", "first value of a wrong type"),
    "non_finite": ("non_finite_score", "error", "first value that is not finite"),
}
"""Outcome to the event that tells of it: kind, level, words."""


class FirstTroubles:
    """Tells of each verifier's first trouble of each kind; how often it comes is a metric of every step."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._told: set[tuple[str, str]] = set()

    def state(self) -> list[list[str]]:
        """What was told, for a later attempt that goes on from here."""
        return [list(key) for key in sorted(self._told)]

    def restore(self, state: Sequence[Sequence[str]]) -> None:
        """Go on where another one was."""
        self._told = {(str(verifier), str(outcome)) for verifier, outcome in state}

    def tell(self, step: int, groups: Sequence[GroupRecord]) -> None:
        """Look through the scores of a step, or of the held-out rows after it."""
        for score in (score for group in groups for item in group.completions for score in item.scores):
            key = score.verifier, score.outcome
            if score.outcome not in TOLD or key in self._told:
                continue
            self._told.add(key)
            kind, level, words = TOLD[score.outcome]
            data = {"verifier": score.verifier, "outcome": score.outcome, "step": step}
            self._writer.event(kind, f"{score.verifier}: {words} at step {step}: {score.reason}", level, data)


@dataclass
class _Tally:
    """Prompts, completions, those without a reward, and who took it from them, for what reason."""

    prompts: int = 0
    completions: int = 0
    lost: int = 0
    verifiers: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def of(cls, groups: Sequence[GroupRecord]) -> _Tally:
        tally = cls(prompts=len(groups))
        for item in (item for group in groups for item in group.completions):
            tally.completions += 1
            tally.lost += item.reward is None
            for score in item.scores:
                if score.value is None and score.weight != 0:
                    tally.verifiers[score.verifier] += 1
                    tally.reasons[score.verifier, score.reason] += 1
        return tally

    def state(self) -> dict[str, Any]:
        counts = {"prompts": self.prompts, "completions": self.completions, "lost": self.lost}
        reasons = [[*key, count] for key, count in self.reasons.items()]
        return counts | {"verifiers": dict(self.verifiers), "reasons": reasons}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> _Tally:
        reasons = Counter({(str(name), str(reason)): int(count) for name, reason, count in state["reasons"]})
        verifiers = Counter({str(name): int(count) for name, count in state["verifiers"].items()})
        prompts, completions, lost = (int(state[name]) for name in ("prompts", "completions", "lost"))
        return cls(prompts, completions, lost, verifiers, reasons)

    def add(self, other: _Tally) -> None:
        self.prompts += other.prompts
        self.completions += other.completions
        self.lost += other.lost
        self.verifiers += other.verifiers
        self.reasons += other.reasons

    @property
    def share(self) -> float:
        return self.lost / self.completions if self.completions else 0.0

    def told(self) -> str:
        """How many have no reward, which verifier is to blame, and its most frequent reason."""
        verifier, count = self.verifiers.most_common(1)[0]
        reason = max((count, text) for (name, text), count in self.reasons.items() if name == verifier)[1]
        return (
            f"{self.lost} of the last {self.completions} completions ({self.share:.0%}) have no reward: {verifier} "
            f"abstained on {count}, most often: {reason or '(no reason given)'}"
        )


class AbstentionWatch:
    """Whether too many completions have no reward since a verifier of non-zero weight abstained.

    The share is taken over the newest steps that hold `WINDOW_PROMPTS` prompts together, one step when it has that
    many; a run that ends with fewer is judged by all that it has. Every process of a run sees all completions, so all
    come to the same conclusion.
    """

    def __init__(self, limit: float | None) -> None:
        """`limit` is the greatest share that is borne; None bears all."""
        self.lost = 0
        """Completions without a reward, of all that were taken in."""
        self._limit = limit
        self._steps: deque[_Tally] = deque()

    def state(self) -> dict[str, Any]:
        """What was taken in, for a later attempt that goes on from here."""
        return {"lost": self.lost, "steps": [tally.state() for tally in self._steps]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where another one was."""
        self.lost = int(state["lost"])
        self._steps = deque(_Tally.from_state(one) for one in state["steps"])

    def add(self, groups: Sequence[GroupRecord]) -> None:
        """Take in the groups of a step."""
        self._steps.append(_Tally.of(groups))
        self.lost += self._steps[-1].lost
        while sum(tally.prompts for tally in self._steps) - self._steps[0].prompts >= WINDOW_PROMPTS:
            self._steps.popleft()

    def verdict(self, last: bool) -> str | None:
        """Why the run should pause, in words, or None; `last`: no more steps will come."""
        newest = _Tally()
        for tally in self._steps:
            newest.add(tally)
        return self._judged(newest) if last or newest.prompts >= WINDOW_PROMPTS else None

    def verdict_on(self, groups: Sequence[GroupRecord]) -> str | None:
        """The same of held-out rows alone."""
        return self._judged(_Tally.of(groups))

    def _judged(self, tally: _Tally) -> str | None:
        if self._limit is None or tally.share <= self._limit:
            return None
        return f"{tally.told()}; mend the verifier or the gold that it reads and start the run again" + (
            f", or raise limits.abstained above {self._limit:g}" if self._limit < 1 else ""
        )
