"""The reward of one completion from its verifiers' scores: the one rule, used by the trainer and the bench. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class WeightedScore(Protocol):
    """A verifier's score and its weight; `value` None means that it abstained."""

    @property
    def value(self) -> float | None: ...

    @property
    def weight(self) -> float: ...


def weighted_reward(scores: Iterable[WeightedScore]) -> float | None:
    """Sum of weight times score; None when a verifier of non-zero weight abstained."""
    total = 0.0
    for score in scores:
        if score.weight == 0:
            continue
        if score.value is None:
            return None
        total += score.weight * score.value
    return total
