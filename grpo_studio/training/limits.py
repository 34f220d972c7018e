"""Whether a run has used up its hours, money or tokens: asked after each step, by the clock that nobody can set."""

from __future__ import annotations

import time
from pathlib import Path

from grpo_studio.config import RunConfig
from grpo_studio.spending import SpendingCount, Spent, has_limits, price_per_hour, reached
from grpo_studio.store.reader import RunReader


class LimitWatch:
    """Begins with what all attempts have spent up to now; from then on time is the monotonic clock's."""

    def __init__(self, config: RunConfig, database: Path) -> None:
        self._config = config
        self._database = database
        self._watches = has_limits(config)
        self._count = SpendingCount()
        self._since = time.monotonic()
        self._before = self._recorded() if self._watches else Spent()
        self._price = price_per_hour(config) if self._watches else None

    def verdict(self, step: int) -> str | None:
        """Why the run stops after this step; None while it is within its limits."""
        if not self._watches:
            return None
        seconds = self._before.seconds + time.monotonic() - self._since
        tokens = self._recorded().tokens if self._config.limits.tokens is not None else self._before.tokens
        return reached(self._config, Spent(seconds, tokens), step, self._price)

    def _recorded(self) -> Spent:
        with RunReader(self._database) as reader:
            return self._count.look(reader)
