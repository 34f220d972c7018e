"""What to change when memory has run out: by a forecast, held against what really was needed, or without one. Pure."""

from __future__ import annotations

from grpo_studio.config import RunConfig
from grpo_studio.disk import sized
from grpo_studio.memory.forecast import Forecast


def room_by_forecast(forecast: Forecast, phase: str | None, available: int, needed: int) -> int:
    """The size that a forecast has to keep to so that what it stands for fits in `available` bytes.

    It ran out, so more than `available` was needed, `needed` at least: where the forecast says less, it says too little
    of everything by that share.
    """
    said = forecast.by_phase.get(phase or "", forecast.total_bytes)
    true = max(available, needed)
    return available if said >= true else int(available * said / true)


def smallest_change(forecast: Forecast) -> str | None:
    """The first change that fits the forecast's card, in words; None when there is none."""
    change = next((change for change in forecast.changes if change.fits), None)
    if change is None:
        return None
    settings = " and ".join(f"{name}={_value(value)}" for name, value in change.settings.items())
    return f"set {settings}, for which the forecast is {sized(change.total_bytes)}"


def without_forecast(config: RunConfig, phase: str | None) -> str:
    """What usually helps in a phase."""
    memory, algorithm = config.memory, config.algorithm
    fewer = f"algorithm.max_completion_length (now {algorithm.max_completion_length})"
    if phase == "rollout":
        return f"use fewer algorithm.prompts_per_step (now {algorithm.prompts_per_step}) or a smaller {fewer}"
    if (
        phase in ("loss", "reference", None, "score", "evaluate", "sync")
        and config.effective_micro_batch() > 1
        and phase
    ):
        return f"use a smaller memory.micro_batch (now {config.effective_micro_batch()}) or a smaller {fewer}"
    if phase in ("loss", "reference") and not memory.gradient_checkpointing:
        return f"use memory.gradient_checkpointing=true or a smaller {fewer}"
    if memory.adapter == "none":
        return "use memory.adapter=lora or a smaller model"
    return "use memory.adapter=qlora or a smaller model" if memory.adapter == "lora" else "use a smaller model"


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
