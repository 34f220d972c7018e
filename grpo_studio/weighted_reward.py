"""The reward of one completion from its verifiers' scores: the one rule, used by the trainer and the bench. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

LARGEST: Final = 1e18
"""TRL takes means and squares of rewards as float32, whose largest is 3.4e38: past it a batch can ruin the weights."""


class WeightedScore(Protocol):
    """A verifier's score and its weight; `value` None means that it abstained."""

    @property
    def value(self) -> float | None: ...

    @property
    def weight(self) -> float: ...


def weighted_reward(scores: Iterable[WeightedScore]) -> float | None:
    """Sum of weight times score; None when a verifier of non-zero weight abstained, or for what cannot be added up.

    The latter are scores whose weighted sizes add up to more than `LARGEST`, or to no finite number.
    """
    terms = []
    for score in scores:
        if score.weight == 0:
            continue
        if score.value is None:
            return None
        terms.append(score.weight * score.value)
    fits = sum(abs(term) for term in terms) <= LARGEST  # of no number this is false
    return sum(terms, 0.0) if fits else None
