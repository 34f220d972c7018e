"""What the Live page's strip says of time, money and limits: numbers where they are known, and only there."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from grpo_studio.devices import current_device
from grpo_studio.plots.figure import tidy
from grpo_studio.run_facts import setup_of
from grpo_studio.spending import Price, SpendingCount, forecast_left, price_per_hour
from grpo_studio.store.reader import RunReader
from grpo_studio.ui.live_run import LiveRun

CARD_FOR = 60.0
"""Seconds for which the name of this machine's card is good."""


@dataclass
class _Counted:
    count: SpendingCount = field(default_factory=SpendingCount)
    lock: threading.Lock = field(default_factory=threading.Lock)


@lru_cache(maxsize=64)
def _counted(database: Path) -> _Counted:
    """The one count of a run's database, shared by all pages that show it."""
    return _Counted()


@lru_cache(maxsize=1)
def _card(turn: int) -> str:
    """This machine's first."""
    return current_device().name


def _card_of(reader: RunReader) -> str:
    """The card that the newest attempt trains on, as it recorded; else this machine's."""
    told = setup_of(reader).get("card")
    return told if isinstance(told, str) else _card(int(time.monotonic() / CARD_FOR))


def money(run: LiveRun, reader: RunReader, step: int, pace: float | None) -> dict[str, Any]:
    """Seconds and cost of all attempts so far and at the end, and the limit that ends the run before.

    Args:
        step: the last step done; pace: seconds a step, None when it is not known.
    """
    counted = _counted(reader.path)
    alive = not run.state.ended and run.state.state != "queued"
    with counted.lock:
        used = counted.count.look(reader, time.time() if alive else None)
    price = price_per_hour(run.config, _card_of(reader))
    left = forecast_left(run.config, used, step, pace, price)
    return {
        "seconds": tidy(used.seconds),
        "cost": _told(price, None if price is None else price.of(used.seconds)),
        "cost_at_end": _told(price, None if left is None else left.cost_at_end),
        "price": None if price is None else f"{price.told(price.value)}, {price.source}",
        "stops_at": left.stops_at if left else "",
        "stops_in": tidy(left.stops_in) if left and left.stops_in is not None else None,
    }


def _told(price: Price | None, amount: float | None) -> str | None:
    return None if price is None or amount is None else price.told(amount)
