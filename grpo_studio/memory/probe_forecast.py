"""The forecast for the very batch that was probed, beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from grpo_studio.errors import StudioError
from grpo_studio.memory.forecasting import forecast
from grpo_studio.memory.probe_document import BackendResult
from grpo_studio.memory.probe_run import Workplace
from grpo_studio.memory.probe_settings import of_backend
from grpo_studio.memory.tracer import Tracer

MEASURED = ("reference", "loss", "optimizer")
"""Phases that a probe measures; what the allocator keeps beside tensors is not in what it measures."""
UNSEEN = "allocator_reserve"


def with_forecasts(place: Workplace, results: Sequence[BackendResult]) -> tuple[list[BackendResult], list[str]]:
    """The results with their forecasts; a note where there is none. Seconds, or less when it was traced before."""
    place.progress("forecast", 0.98)
    told: list[BackendResult] = []
    with Tracer() as tracer:
        for result in results:
            try:
                expected = _expected(place, result.backend, tracer)
            except StudioError as error:
                return list(results), [f"no forecast beside the measured peaks: {error}"]
            told.append(result.model_copy(update={"forecast_bytes": expected}))
    return told, []


def _expected(place: Workplace, backend: str, tracer: Tracer) -> int:
    config = of_backend(place.config, backend, str(place.rollout["dtype"]))
    algorithm = config.algorithm.model_copy(update={"max_completion_length": place.rollout["completion_tokens"]})
    found = forecast(
        config.model_copy(update={"algorithm": algorithm}),
        place.settings,
        prompt_tokens=place.rollout["prompt_tokens"],
        tracer=tracer,
    )
    phases = [parts for phase, parts in found.parts_by_phase.items() if phase in MEASURED]
    return max(sum(size for part, size in parts.items() if part != UNSEEN) for parts in phases)
