"""What solves a row: one reward of the run and the score from which on a completion has passed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grpo_studio.config import RunConfig
from grpo_studio.problem import Problem
from grpo_studio.shown import shown_name
from grpo_studio.store.records import ScoreRecord


@dataclass(frozen=True)
class PassRule:
    """A completion solves its row when the reward of this label scored at least `score`."""

    reward: str
    score: float

    def passed(self, scores: Iterable[ScoreRecord]) -> bool | None:
        """None when the reward abstained, or is not among the scores."""
        value = next((score.value for score in scores if score.verifier == self.reward), None)
        return self.judged(value)

    def judged(self, value: float | None) -> bool | None:
        return None if value is None else value >= self.score


def pass_rule(config: RunConfig) -> PassRule:
    """As `evaluation.passed_by` says, else by the reward of the greatest weight, the first of equals."""
    asked = config.evaluation.passed_by
    greatest = max(config.rewards, key=lambda reward: reward.weight)
    return PassRule(greatest.label if asked is None else asked, config.evaluation.pass_score)


def labels_of(config: RunConfig) -> tuple[str, ...]:
    """The names of a run's rewards, in their order."""
    return tuple(reward.label for reward in config.rewards)


def passing_problems(config: RunConfig) -> Iterator[Problem]:
    """An unknown name in `evaluation.passed_by`."""
    labels = labels_of(config)
    asked = config.evaluation.passed_by
    if asked is not None and asked not in labels:
        fix = f"use one of {', '.join(map(shown_name, labels))}"
        yield Problem("evaluation.passed_by", f"no reward is named {shown_name(asked)}", fix)
