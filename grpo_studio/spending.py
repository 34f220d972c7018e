"""What a run costs, its limits, and what is still to come, from what it has spent (`spent`).

Pure, but for a price whose card nobody names: then this machine is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grpo_studio.cards_table import TABLE_DATE, find_card
from grpo_studio.config import RunConfig
from grpo_studio.devices import current_device
from grpo_studio.scale_checks import starts_server
from grpo_studio.spent import HOUR, SpendingCount, Spent, spent

__all__ = [
    "HOUR", "Left", "Limit", "Price", "SpendingCount", "Spent", "cards_used", "exhausted", "forecast_left",
    "has_limits", "hours_told", "limits_of", "price_per_hour", "reached", "spent",
]  # fmt: skip


@dataclass(frozen=True)
class Price:
    """What an hour costs and who says so; `sign` is "$" where it is known to be US dollars, else empty."""

    value: float
    source: str
    sign: str = "$"

    def of(self, seconds: float) -> float:
        return self.value * seconds / HOUR

    def told(self, amount: float) -> str:
        """An amount of money for people: two decimals, or two digits where it is less than a cent."""
        return f"{self.sign}{amount:.2f}" if amount >= 0.01 or amount == 0 else f"{self.sign}{amount:.2g}"


def cards_used(config: RunConfig) -> int:
    """GPUs that a run occupies: one for each process, and those of its own vLLM server."""
    server = config.rollout.tensor_parallel if starts_server(config) else 0
    return (config.scale.processes + server) * config.scale.machines


def price_per_hour(config: RunConfig, card_name: str | None = None) -> Price | None:
    """A person's own price, else that of the cards in the dated table; None where neither is known.

    Args:
        card_name: as nvidia-smi prints it; None: this machine's first GPU.
    """
    if config.limits.price_per_hour is not None:
        return Price(config.limits.price_per_hour, "limits.price_per_hour", sign="")
    card = find_card(current_device().name if card_name is None else card_name)
    if card is None or card.price is None:
        return None
    count = cards_used(config)
    cards = card.name if count == 1 else f"{count} x {card.name}"
    return Price(count * card.price, f"{cards}, {card.price_source}, read {card.price_read}; table of {TABLE_DATE}")


@dataclass(frozen=True)
class Limit:
    """One limit with what is used of it; `told` writes an amount with its unit."""

    field: str
    most: float
    used: float
    told: Callable[[float], str]

    @property
    def reached(self) -> bool:
        return self.used >= self.most


def has_limits(config: RunConfig) -> bool:
    """Whether hours, money or tokens of a run are limited."""
    limits = config.limits
    return (limits.hours, limits.cost, limits.tokens) != (None, None, None)


def limits_of(config: RunConfig, used: Spent, price: Price | None) -> Iterator[Limit]:
    """The limits that are set and can be counted."""
    limits = config.limits
    if limits.hours is not None:
        yield Limit("limits.hours", limits.hours, used.hours, hours_told)
    if limits.cost is not None and price is not None:
        yield Limit("limits.cost", limits.cost, price.of(used.seconds), price.told)
    if limits.tokens is not None:
        yield Limit("limits.tokens", limits.tokens, used.tokens, _tokens)


def reached(config: RunConfig, used: Spent, step: int, price: Price | None) -> str | None:
    """Why a run stops after a step; None while it is within its limits."""
    for limit in limits_of(config, used, price):
        if limit.reached:
            return (
                f"the limit of {limit.told(limit.most)} is reached after step {step} ({_bill(used, price)}); "
                f"raise {limit.field} and resume"
            )
    return None


def exhausted(config: RunConfig, used: Spent, price: Price | None = None) -> str | None:
    """Why a run cannot go on with these settings, since it would stop at once; None when it can."""
    price = price_per_hour(config) if price is None else price
    for limit in limits_of(config, used, price):
        if limit.reached:
            return (
                f"the limit of {limit.told(limit.most)} is used up: {limit.told(limit.used)} so far; resume with "
                f"{limit.field} above {_above(limit.used)}"
            )
    return None


@dataclass(frozen=True)
class Left:
    """What is still to come at the present pace; `stops_*` of the nearest limit that comes before the last step."""

    seconds: float
    cost_at_end: float | None
    stops_at: str = ""
    stops_in: float | None = None


def forecast_left(
    config: RunConfig, used: Spent, step: int, step_seconds: float | None, price: Price | None
) -> Left | None:
    """Seconds and cost to the last step, and the limit that ends the run before it; None without a pace.

    Args:
        step: the last step done.
        step_seconds: what a step takes, evaluations included.
    """
    if step_seconds is None:
        return None
    seconds = step_seconds * max(0, config.algorithm.steps - step)
    cost = None if price is None else price.of(used.seconds + seconds)
    rates = {
        "limits.hours": 1 / HOUR,
        "limits.cost": 0.0 if price is None else price.value / HOUR,
        "limits.tokens": tokens_of_step(config, used) / max(step_seconds, 1e-9),
    }
    ends = [
        (max(0.0, limit.most - limit.used) / rates[limit.field], limit.told(limit.most))
        for limit in limits_of(config, used, price)
        if rates[limit.field] > 0
    ]
    within, limit_told = min(ends, default=(seconds, ""))
    return Left(seconds, cost, limit_told, within) if within < seconds else Left(seconds, cost)


def tokens_of_step(config: RunConfig, used: Spent) -> float:
    """Completion tokens that an optimizer step samples, at the mean length so far; 0 before the first."""
    algorithm = config.algorithm
    return used.tokens / max(1, used.groups) * algorithm.prompts_per_step / algorithm.num_iterations


def _bill(used: Spent, price: Price | None) -> str:
    money = [] if price is None else [price.told(price.of(used.seconds))]
    return ", ".join([hours_told(used.hours), *money, _tokens(used.tokens)])


def hours_told(hours: float) -> str:
    """Hours for people: three figures of them."""
    text = f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"
    return f"{text} hour{'s' * (text != '1')}"


def _tokens(tokens: float) -> str:
    return f"{int(tokens):,} token{'s' * (int(tokens) != 1)}"


def _above(value: float) -> str:
    return f"{value:.4g}" if value < 1e4 else f"{value:.0f}"
