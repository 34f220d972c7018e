"""What `check` says of a run's limits: money that cannot be counted, and what the limits come to."""

from __future__ import annotations

from collections.abc import Iterator

from grpo_studio.cards_table import TABLE_DATE
from grpo_studio.config import RunConfig
from grpo_studio.devices import current_device
from grpo_studio.problem import Problem
from grpo_studio.shown import shown_name
from grpo_studio.spending import HOUR, Price, hours_told, price_per_hour


def limit_problems(config: RunConfig, notes: list[str]) -> Iterator[Problem]:
    """A limit that can never be told to be reached; adds to `notes` what the others mean."""
    limits = config.limits
    device = current_device() if limits.cost is not None or limits.hours is not None else None
    price = None if device is None else price_per_hour(config, device.name)
    if limits.cost is not None and price is None and device is not None:
        kind = "card" if device.kind == "cuda" else "machine"
        yield Problem(
            "limits.price_per_hour",
            f"limits.cost is {limits.cost:g}, but what an hour costs is not known: the {kind} "
            f"{shown_name(device.name, 80)} is not in the table of {TABLE_DATE}, or has no price there",
            "give limits.price_per_hour, or leave limits.cost empty",
        )
    elif limits.cost is not None and price is not None and price.value == 0:
        yield Problem(
            "limits.price_per_hour",
            f"at 0 an hour no run ever costs {limits.cost:g}",
            "give what an hour costs, or leave limits.cost empty",
        )
    elif price is not None:
        notes += _what_money_means(config, price)
    notes += _what_tokens_mean(config)


def _what_money_means(config: RunConfig, price: Price) -> Iterator[str]:
    limits, an_hour = config.limits, f"{price.told(price.value)} an hour ({price.source})"
    if limits.cost is not None:
        hours = limits.cost / price.value
        yield f"the run stops at a cost of {price.told(limits.cost)}, which is {hours_told(hours)} at {an_hour}"
    if limits.hours is not None:
        cost = price.told(price.of(limits.hours * HOUR))
        yield f"at the limit of {hours_told(limits.hours)} it has cost {cost}, at {an_hour}"


def _what_tokens_mean(config: RunConfig) -> Iterator[str]:
    """The step after which the limit may be reached, when completions are as long as they may be."""
    tokens, algorithm = config.limits.tokens, config.algorithm
    if tokens is None:
        return
    batches = -(-tokens // (config.completions_per_step * algorithm.max_completion_length))
    earliest = (batches - 1) * algorithm.num_iterations + 1
    if earliest >= algorithm.steps:
        return
    told = f"limits.tokens may be reached after step {earliest} of {algorithm.steps}, if all completions are cut off"
    waits = [
        f"the first {what} ({name} is {every})"
        for what, name, every in (
            ("evaluation during training", "evaluation.every", config.evaluation.every),
            ("checkpoint", "checkpoint.every", config.checkpoint.every),
        )
        if every > earliest
    ]
    yield f"{told}, before {' and '.join(waits)}" if waits else told
