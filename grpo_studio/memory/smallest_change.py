"""What to change when memory has run out: by a forecast, held against what really was needed, or without one. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grpo_studio.config import RunConfig
from grpo_studio.disk import sized
from grpo_studio.memory.forecast import Change, Forecast
from grpo_studio.memory.phase_bytes import CONTEXT_BYTES, FRAGMENTED

Ask = Callable[[RunConfig, int | None], Forecast]
"""The forecast of a configuration for a card of so many bytes; None: for a CPU, where it counts tensors alone."""


@dataclass(frozen=True)
class Shortage:
    """Memory that ran out, in bytes of the run's tensors.

    Args:
        phase: where; None where it is not known.
        available: what the process could have had.
        needed: what it had and asked for: at least that would have been needed.
        on_gpu: whether changes that take more devices are worth a word, and how a forecast counts.
    """

    phase: str | None
    available: int
    needed: int
    on_gpu: bool


def looked_ahead(config: RunConfig, shortage: Shortage, ask: Ask) -> tuple[Forecast, str | None]:
    """The forecast for what there was, and the first change in words that fits by it; None when there is none."""
    outside = CONTEXT_BYTES if shortage.on_gpu else 0  # a forecast for a GPU counts CUDA's own memory
    forecast = ask(config, shortage.available + outside if shortage.on_gpu else None)
    room = room_by_forecast(forecast, shortage.phase, shortage.available + outside, shortage.needed + outside)
    # On a CPU nobody proposes: a card with as much room for tensors stands for it.
    card = room if shortage.on_gpu else CONTEXT_BYTES + int(room * (1 + FRAGMENTED))
    for change in _without_more_devices_first(ask(config, card).changes, shortage.on_gpu):
        total = change.total_bytes
        if not shortage.on_gpu:
            total = ask(_changed(config, change), None).total_bytes
        if change.fits and total <= room:
            return forecast, in_words(change, total)
    return forecast, None


def room_by_forecast(forecast: Forecast, phase: str | None, available: int, needed: int) -> int:
    """The size that a forecast has to keep to so that what it stands for fits in `available` bytes.

    It ran out, so more than `available` was needed, `needed` at least: where the forecast says less, it says too little
    of everything by that share.
    """
    said = forecast.by_phase.get(phase or "", forecast.total_bytes)
    true = max(available, needed)
    return available if said >= true else int(available * said / true)


def in_words(change: Change, total: int) -> str:
    """What to set, and what it comes to."""
    settings = " and ".join(f"{name}={_value(value)}" for name, value in change.settings.items())
    return f"set {settings}, for which the forecast is {sized(total)}"


def without_forecast(config: RunConfig, phase: str | None) -> str:
    """What usually helps in a phase."""
    memory, algorithm, micro_batch = config.memory, config.algorithm, config.effective_micro_batch()
    fewer = f"a smaller algorithm.max_completion_length (now {algorithm.max_completion_length})"
    if phase == "rollout":
        return f"use fewer algorithm.prompts_per_step (now {algorithm.prompts_per_step}) or {fewer}"
    if phase in ("loss", "reference", "rehearsal") and micro_batch > 1:
        return f"use a smaller memory.micro_batch (now {micro_batch}) or {fewer}"
    if phase in ("loss", "rehearsal") and not memory.gradient_checkpointing:
        return f"use memory.gradient_checkpointing=true or {fewer}"
    if memory.adapter == "none":
        return "use memory.adapter=lora or a smaller model"
    return "use memory.adapter=qlora or a smaller model" if memory.adapter == "lora" else "use a smaller model"


def _without_more_devices_first(changes: tuple[Change, ...], on_gpu: bool) -> list[Change]:
    more = [change for change in changes if any(name.startswith("scale.") for name in change.settings)]
    alone = [change for change in changes if change not in more]
    return alone + more if on_gpu else alone


def _changed(config: RunConfig, change: Change) -> RunConfig:
    values = config.model_dump(mode="json")
    for name, value in change.settings.items():
        section, _, key = name.partition(".")
        values[section][key] = value
    return RunConfig.model_validate(values)


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
