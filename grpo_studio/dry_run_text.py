"""What a dry run found, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grpo_studio.cards_table import TABLE_DATE
from grpo_studio.config import RunConfig
from grpo_studio.disk import sized
from grpo_studio.dry_run import DryRun
from grpo_studio.dry_run_estimate import REACHED, OnCard, Speed, Whole, costs
from grpo_studio.spending import Price


def lines_of_iteration(found: DryRun) -> Iterator[str]:
    one = found.iteration
    yield f"one iteration on {found.device.name}, {found.setup.get('dtype', 'precision not told')}:"
    rows = [("load", one.loading), *one.step.items(), ("evaluate", one.evaluate), ("save", one.save)]
    for phase, seconds in rows:
        if seconds is not None:
            peak = f"   peak {sized(one.peaks[phase])}" if phase in one.peaks else ""
            yield f"  {phase:<10} {duration(seconds):>12}{peak}"
    yield f"  {'a step':<10} {duration(one.step_seconds):>12}   {one.tokens:,} tokens, {one.length:.0f} a completion"
    if one.live is not None:
        yield f"  {one.live:.0%} of the completions carried gradient"


def lines_of_whole(config: RunConfig, whole: Whole, at_most: Whole, price: Price | None) -> Iterator[str]:
    yield ""
    yield f"the whole run of {config.algorithm.steps:,} steps, with completions as long as these:"
    yield f"  {'load':<28} {duration(whole.loading):>12}"
    yield f"  {'steps':<28} {duration(whole.steps):>12}"
    if whole.evaluation_count:
        yield f"  {_counted(whole.evaluation_count, 'evaluation'):<28} {duration(whole.evaluations):>12}"
    yield f"  {_counted(whole.checkpoint_count, 'checkpoint'):<28} {duration(whole.checkpoints):>12}"
    yield f"  {'together':<28} {duration(whole.seconds):>12}{_money(whole, price)}, {whole.tokens:,} tokens"
    if at_most.seconds > whole.seconds:
        limit = config.algorithm.max_completion_length
        yield (
            f"  at most, if each completion is cut off at {limit} tokens: {duration(at_most.seconds)}"
            f"{_money(at_most, price)}, {at_most.tokens:,} tokens"
        )
    if price is None:
        yield "  no cost: set limits.price_per_hour to what an hour of this machine costs"
    else:
        yield f"  at {price.told(price.value)} an hour ({price.source})"


def lines_of_cards(cards: Sequence[OnCard], here: Speed | None, device: str) -> Iterator[str]:
    if here is None:
        return
    yield ""
    rough = f", a rough estimate from {device}: cards reach {REACHED:.0%} of their data sheets" if here.measured else ""
    yield f"1,000 steps on other cards{rough}; typical on-demand prices, table of {TABLE_DATE}:"
    yield f"  {'card':<18}{'a step':>12}{'hours':>10}{'cost':>10}   price an hour"
    for on in cards:
        name = on.card.name if on.cards == 1 else f"{on.cards} x {on.card.name}"
        cost = "-" if on.cost is None else Price(0, "").told(on.cost)
        listed = "no price verified" if on.card.price is None else f"${on.card.price:.2f}, {on.card.price_source}"
        read = f", read {on.card.price_read}" if on.card.price_read else ""
        small = "; too small: the peak was greater" if on.fits is False else ""
        yield f"  {name:<18}{duration(on.step_seconds):>12}{on.hours:>10.2f}{cost:>10}   {listed}{read}{small}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _money(whole: Whole, price: Price | None) -> str:
    cost = costs(whole, price)
    return "" if price is None or cost is None else f", {price.told(cost)}"


def duration(seconds: float) -> str:
    """Seconds for people: "0.52 s", "12.3 s", "4 min 10 s", "2 h 05 min", "3 d 4 h"."""
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"
