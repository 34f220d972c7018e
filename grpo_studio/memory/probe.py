"""Probe a configuration: loss backends on one frozen batch, and a sweep over its size; the result is kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from grpo_studio.config import RunConfig
from grpo_studio.memory.probe_document import BackendResult, ProbeDocument, Sweep
from grpo_studio.memory.probe_forecast import with_forecasts
from grpo_studio.memory.probe_run import Workplace, measure_backends, open_workplace, remove_gradient, sample_batch
from grpo_studio.memory.probe_settings import BACKENDS, reference_first
from grpo_studio.memory.probes import keep_probe, new_probe_id
from grpo_studio.memory.sweep_plan import SweepAsked
from grpo_studio.memory.sweep_run import SweepRefusedError, require_time, sweep
from grpo_studio.progress import Progress
from grpo_studio.settings import Settings


@dataclass(frozen=True)
class ProbeAsked:
    """What a probe is to do. `anyway`: also on a GPU that a run is using."""

    name: str
    backends: tuple[str, ...] = BACKENDS
    sweep: SweepAsked | None = None
    anyway: bool = False
    forecast: bool = True


@dataclass(frozen=True)
class Probed:
    """The result, and why the sweep that was asked for was not begun, if so."""

    document: ProbeDocument
    refused: str | None = None


def probe(config: RunConfig, settings: Settings, asked: ProbeAsked, progress: Progress) -> Probed:
    """Sample a batch, run the backends on it, sweep. Blocks for a minute or more.

    Raises:
        StudioError: there is no device, no model, no batch; or the result cannot be kept.
    """
    began = time.time()
    parts = 2.0 if asked.sweep else 1.0  # the sweep is the second half
    with ExitStack() as stack:
        place = open_workplace(config, settings, asked.anyway, progress, stack)
        first = 1 / (len(asked.backends) + 1) / parts
        sample_batch(place, first)
        results = measure_backends(place, asked.backends, first, 1 / parts)
        remove_gradient(place)
        swept, refused = _swept(place, asked, results)
        if asked.forecast:
            results, notes = with_forecasts(place, results)
            place.notes += notes
    document = _document(place, asked, began, results, swept)
    keep_probe(settings, document)
    progress("probed", 1.0)
    return Probed(document, refused)


def _swept(place: Workplace, asked: ProbeAsked, results: Sequence[BackendResult]) -> tuple[Sweep | None, str | None]:
    if asked.sweep is None:
        return None, None
    try:
        require_time(place, asked.sweep, results)
    except SweepRefusedError as error:
        place.notes.append(f"no sweep: {error}")
        return None, str(error)
    return sweep(place, asked.sweep, results), None


def _document(
    place: Workplace, asked: ProbeAsked, began: float, results: Sequence[BackendResult], swept: Sweep | None
) -> ProbeDocument:
    config, rollout = place.config, place.rollout
    reference = next((one for one in reference_first(asked.backends) if _by_name(results, one).loss is not None), None)
    return ProbeDocument(
        id=new_probe_id(asked.name, began),
        name=asked.name[:200],
        started=began,
        config=place.asked.model_dump(mode="json"),
        model=config.model.id[:500],
        dtype=rollout["dtype"],
        adapter=config.memory.adapter,
        device=place.device.name,
        card_bytes=place.device.total or None,
        measured="allocator" if place.device.kind == "cuda" else "tensors",
        prompt_tokens=rollout["prompt_tokens"],
        completion_tokens=rollout["completion_tokens"],
        completions=config.completions_per_step,
        micro_batch=config.effective_micro_batch(),
        batch=rollout["batch"],
        backends=[_against(one, reference, results) for one in results],
        reference_backend=reference,
        sweep=swept,
        notes=[note[:2000] for note in dict.fromkeys(place.notes)][:64],
    )


def _against(result: BackendResult, reference: str | None, results: Sequence[BackendResult]) -> BackendResult:
    peak = None if reference is None else _by_name(results, reference).peak_bytes
    if not peak or result.peak_bytes is None:
        return result
    return result.model_copy(update={"against_reference": result.peak_bytes / peak})


def _by_name(results: Sequence[BackendResult], backend: str) -> BackendResult:
    return next(one for one in results if one.backend == backend)


def failure(document: ProbeDocument) -> str | None:
    """Why a probe counts as failed: no backend gave a result, and not for want of memory; None when one did."""
    failed = [one for one in document.backends if one.error is not None and not one.out_of_memory]
    return failed[0].error if len(failed) == len(document.backends) else None
