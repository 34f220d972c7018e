"""Memory ran out: says in one line where, what was in use, what the forecast was, and the smallest change that fits.

The one place where a session's failed allocation becomes an error for people. What can be freed is freed first, and the
forecast is bounded in time: without it the line is shorter, never missing.
"""

from __future__ import annotations

import gc
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from grpo_studio.config import RunConfig
from grpo_studio.disk import sized
from grpo_studio.errors import OutOfMemoryError
from grpo_studio.memory.allocation import asked_for, out_of_memory
from grpo_studio.memory.forecast import CardSize, Forecast
from grpo_studio.memory.smallest_change import Shortage, looked_ahead, without_forecast
from grpo_studio.settings import Settings
from grpo_studio.training.memory_in_use import InUse, in_use
from grpo_studio.training.memory_snapshot import dump_snapshot
from grpo_studio.training.phases import OTHER, PhaseClock
from grpo_studio.training.precision import effective_dtype

REHEARSAL = "rehearsal"
"""The phase of a worst-case step, around those that it goes through."""
FORECAST_WITHIN = 30.0
"""Seconds that the forecast may take; made cold it takes less than ten on a machine that is not busy."""
_NOTED = "phases_of_grpo_studio"
_WORDS = {
    "rollout": "the rollout",
    "score": "the scoring",
    "reference": "the log-probs of the reference",
    "loss": "the loss (forward and backward)",
    "optimizer": "the optimizer",
    "sync": "the weight sync",
    "save": "the checkpoint",
}


class FailureClock(PhaseClock):
    """A clock that notes on an error the phases in which it came up, the innermost first."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        with super().phase(name):
            try:
                yield
            except BaseException as error:
                setattr(error, _NOTED, (*getattr(error, _NOTED, ()), name))
                raise


@dataclass(frozen=True)
class Scene:
    """What a session knows of itself when memory runs out.

    Args:
        doing: what it was preparing; empty once it trains.
        step: the last step that was done; None before there is a trainer.
        phase: the clock's, for one that is entered and left by callbacks.
        longest_prompt: in tokens; None while it is not known.
        besides: bytes that the process had in use before it loaded anything of the run.
    """

    config: RunConfig
    settings: Settings
    run: Path
    device: torch.device
    doing: str
    step: int | None
    phase: str
    longest_prompt: int | None
    besides: int


def told(error: Exception, scene: Scene) -> OutOfMemoryError:
    """The error for people. It frees the memory that the failed one still holds, so nothing can go on after it."""
    cause = out_of_memory(error) or error
    phases = getattr(error, _NOTED, ()) or ((scene.phase,) if scene.phase != OTHER else ())
    use, asked = in_use(scene.device, scene.besides), asked_for(cause)
    dump_snapshot(scene.run, "out-of-memory")
    with suppress(OSError, MemoryError):
        traceback.print_exception(error)
    _free(error)
    return OutOfMemoryError(message(scene, phases, use, asked, *_looked_ahead(scene, phases, use, asked)))


def message(
    scene: Scene, phases: tuple[str, ...], use: InUse, asked: int | None, forecast: Forecast | None, change: str | None
) -> str:
    """One line; what stands after its last `; ` is what would work."""
    used = f"{sized(use.used)} in use" if use.reserved is None else f"{sized(use.used)} allocated"
    reserved = "" if use.reserved is None else f" ({sized(use.reserved)} reserved)"
    wanted = "" if asked is None else f"asked for {sized(asked)} with "
    seen = f"{wanted}{used}{reserved} of {sized(use.total)} on {use.device}"
    fix = change or without_forecast(scene.config, phases[0] if phases else None)
    return f"out of memory {where(phases, scene.step, scene.doing)}: {seen}{_forecast_words(forecast, phases)}; {fix}"


def where(phases: tuple[str, ...], step: int | None, doing: str) -> str:
    """The phase and the step, in words."""
    phase = phases[0] if phases else None
    word = _WORDS.get(phase or "", "")
    if step is None or (doing and not phases):
        return f"while {doing}"
    if REHEARSAL in phases:
        inner = f", in {word}" if word else ""
        return f"in the rehearsal before step {step + 1}{inner}"
    if phase == "evaluate":
        return f"in the evaluation after step {step}" if step else "in the evaluation before step 1"
    return f"in {word} of step {step + 1}" if word else f"in step {step + 1}"


def _forecast_words(forecast: Forecast | None, phases: tuple[str, ...]) -> str:
    if forecast is None:
        return ""
    phase = next((phase for phase in phases if phase in forecast.by_phase), None)
    if phase is None or phase == forecast.peak_phase:
        return f", where the forecast is {sized(forecast.total_bytes)} ({forecast.peak_phase})"
    here, total = sized(forecast.by_phase[phase]), sized(forecast.total_bytes)
    return f", where the forecast is {here} for this phase and {total} at most ({forecast.peak_phase})"


def _looked_ahead(
    scene: Scene, phases: tuple[str, ...], use: InUse, asked: int | None
) -> tuple[Forecast | None, str | None]:
    """The forecast for what this process could have had, and a change that fits by it as it proved true or not."""
    found: list[tuple[Forecast, str | None]] = []
    needed = use.used - scene.besides + (asked or 0)
    shortage = Shortage(phases[0] if phases else None, use.available, needed, scene.device.type == "cuda")
    settled = {"dtype": scene.config.model.dtype or effective_dtype(scene.config.model)}
    config = scene.config.model_copy(update={"model": scene.config.model.model_copy(update=settled)})

    def ask(config: RunConfig, card: int | None) -> Forecast:
        from grpo_studio.memory.forecasting import forecast

        size = None if card is None else CardSize(use.device, card, "what was left to this process")
        return forecast(config, scene.settings, prompt_tokens=scene.longest_prompt, card=size)

    def look() -> None:
        try:
            found.append(looked_ahead(config, shortage, ask))
        except Exception as error:  # the boundary: no forecast shall hide what it was to explain
            print(f"no forecast: {type(error).__name__}: {error}", file=sys.stderr)

    with suppress(RuntimeError):  # there may be no room for a thread
        thread = threading.Thread(target=look, name="forecast", daemon=True)
        thread.start()
        thread.join(FORECAST_WITHIN)
    return found[0] if found else (None, None)


def _free(error: BaseException) -> None:
    """What the frames of an error and of those before it hold: batches, graphs, the model."""
    link: Any = error
    while link is not None:
        traceback.clear_frames(link.__traceback__)
        link = link.__cause__ or link.__context__
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
