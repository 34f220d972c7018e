"""Forecasts for pages: one warm tracer for the whole app, asked from any thread."""

from __future__ import annotations

import atexit
import functools

from grpo_studio.config import RunConfig
from grpo_studio.memory.forecast import CardSize, Forecast
from grpo_studio.memory.forecasting import forecast
from grpo_studio.memory.tracer import Tracer
from grpo_studio.settings import Settings


class ForecastService:
    """Forecasts one after the other where something has to be traced, at once where it is known. Thread-safe.

    Its tracer's process starts with the first model that has to be traced; one that died is started anew.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tracer = Tracer()

    def ask(self, config: RunConfig, prompt_tokens: int | None, card: CardSize | None) -> Forecast:
        """As `forecasting.forecast`.

        Raises:
            ModelError: the model's config cannot be had.
        """
        return forecast(config, self._settings, prompt_tokens=prompt_tokens, card=card, tracer=self._tracer)

    def close(self) -> None:
        """End the tracer's process; a later question starts another."""
        self._tracer.close()


@functools.lru_cache(maxsize=4)
def forecast_service_of(settings: Settings) -> ForecastService:
    """The service of an app; its tracer ends with the process."""
    service = ForecastService(settings)
    atexit.register(service.close)
    return service
