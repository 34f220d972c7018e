"""From the phases of one measured iteration: time and cost of the whole run, here and on other cards. Pure.

How a phase is carried over to another card: rollouts, weight syncs and the optimizer are bound by the memory's
bandwidth; the loss and the reference by the multiplications; scoring, loading, saving and what lies between stay as
they were, since no card does them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from grpo_studio.cards_table import CARDS, Card
from grpo_studio.config import RunConfig
from grpo_studio.spending import HOUR, Price, cards_used

BY_BANDWIDTH = ("rollout", "sync", "optimizer", "evaluate")
BY_MULTIPLYING = ("loss", "reference")
ASIDE = ("evaluate", "save")
"""Phases that are no part of a step."""
REACHED = 0.4
"""Share of a data sheet's figures that such work is taken to reach, when it is compared with a measured speed."""


@dataclass(frozen=True)
class Speed:
    """How fast a machine is: TFLOP/s, GB/s, and the bytes of a weight. `measured`: by itself, not by a data sheet."""

    tflops: float
    bandwidth: float
    weight_bytes: int
    measured: bool


@dataclass(frozen=True)
class Iteration:
    """What a dry run measured: seconds, tokens, bytes.

    Args:
        loading: from the worker's start to its first step, without the evaluation.
        step: a mean step by phase, without those of `ASIDE`.
        evaluate: the held-out rows once; None when none are held out.
        save: one checkpoint.
        tokens: completion tokens of a batch; length: the mean of its completions.
        peaks: greatest bytes by phase.
        live: share of completions that carried gradient; None when it was not recorded.
    """

    loading: float
    step: Mapping[str, float]
    evaluate: float | None
    save: float
    tokens: int
    length: float
    peaks: Mapping[str, int] = field(default_factory=dict)
    live: float | None = None

    @property
    def step_seconds(self) -> float:
        return sum(self.step.values())


@dataclass(frozen=True)
class Whole:
    """The whole run, in seconds; counts say how often it evaluates and saves."""

    loading: float
    steps: float
    evaluations: float
    checkpoints: float
    evaluation_count: int
    checkpoint_count: int
    tokens: int

    @property
    def seconds(self) -> float:
        return self.loading + self.steps + self.evaluations + self.checkpoints


def whole_run(config: RunConfig, one: Iteration, longer: float = 1.0) -> Whole:
    """The run of `config` when all its iterations are like the measured one.

    Args:
        longer: completions are so many times as long, and what reads or writes them takes as much longer.
    """
    steps, batches = config.algorithm.steps, -(-config.algorithm.steps // config.algorithm.num_iterations)
    evaluations = 0 if one.evaluate is None else 1 + _times(steps, config.evaluation.every)
    checkpoints = _times(steps, config.checkpoint.every)
    stretched = sum(seconds * (longer if grows(phase) else 1.0) for phase, seconds in one.step.items())
    return Whole(
        loading=one.loading,
        steps=stretched * steps,
        evaluations=evaluations * longer * (one.evaluate or 0.0),
        checkpoints=checkpoints * one.save,
        evaluation_count=evaluations,
        checkpoint_count=checkpoints,
        tokens=round(one.tokens * longer * batches),
    )


def grows(phase: str) -> bool:
    """Whether a phase takes longer with longer completions."""
    return phase in ("rollout", *BY_MULTIPLYING)


def longest(config: RunConfig, one: Iteration) -> float:
    """How many times as long completions are when each is cut off at the limit; at least once."""
    return max(1.0, config.algorithm.max_completion_length / one.length) if one.length > 0 else 1.0


@dataclass(frozen=True)
class OnCard:
    """A card of the table: seconds a step, and of 1,000 steps the hours and (None: no price) the cost in US dollars.

    `fits`: whether the greatest measured peak fits its memory; None when it was not measured on a GPU.
    """

    card: Card
    cards: int
    step_seconds: float
    hours: float
    cost: float | None
    fits: bool | None


def across_cards(config: RunConfig, one: Iteration, here: Speed, on_gpu: bool) -> list[OnCard]:
    """1,000 steps with their share of evaluations and checkpoints on each card, cheapest first, unknown prices last."""
    found = [_on_card(config, one, here, card, on_gpu) for card in CARDS]
    return sorted(found, key=lambda on: (on.cost is None, on.cost or on.hours))


def _on_card(config: RunConfig, one: Iteration, here: Speed, card: Card, on_gpu: bool) -> OnCard:
    there, count = speed_of_card(config, card), cards_used(config)
    reached = REACHED if here.measured else 1.0
    by = {
        "bandwidth": here.bandwidth / (there.bandwidth * reached) * there.weight_bytes / here.weight_bytes,
        "multiplying": here.tflops / (there.tflops * reached),
    }

    def carried(phase: str, seconds: float) -> float:
        kind = "bandwidth" if phase in BY_BANDWIDTH else "multiplying" if phase in BY_MULTIPLYING else None
        return seconds if kind is None else seconds * by[kind]

    step = sum(carried(phase, seconds) for phase, seconds in one.step.items())
    aside = carried("evaluate", one.evaluate or 0.0) * _share(config.evaluation.every)
    aside += one.save * _share(config.checkpoint.every)
    hours = 1000 * (step + aside) / HOUR
    cost = None if card.price is None else hours * card.price * count
    peak = max(one.peaks.values(), default=0)
    fits = peak <= card.memory * 10**9 if on_gpu and here.weight_bytes == there.weight_bytes else None
    return OnCard(card, count, step, hours, cost, fits)


def speed_of_card(config: RunConfig, card: Card) -> Speed:
    """A card by its data sheet, in the precision that the run would have on it."""
    wanted = config.model.dtype
    if wanted == "float32" or card.bfloat16 is None:
        return Speed(card.float32, card.bandwidth, 4, measured=False)
    return Speed(card.bfloat16, card.bandwidth, 4 if wanted == "mixed" else 2, measured=False)


def costs(whole: Whole, price: Price | None) -> float | None:
    """What the whole run costs; None without a price."""
    return None if price is None else price.of(whole.seconds)


def _times(steps: int, every: int) -> int:
    """How often something is done that is due every so many steps, and after the last."""
    return 1 if every == 0 else steps // every + (steps % every > 0)


def _share(every: int) -> float:
    return 1 / every if every else 0.0
