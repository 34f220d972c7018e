"""A probe from its settings to its result: one batch, then each loss backend on it in a process of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpo_studio.catalog import BUILTIN_MODELS, fetch, locate
from grpo_studio.child_environment import of_program
from grpo_studio.config import RunConfig
from grpo_studio.devices import Device, current_device, worker_environment
from grpo_studio.errors import ConfigError, TrainingError
from grpo_studio.memory.probe_devices import probe_claim
from grpo_studio.memory.probe_document import BackendResult
from grpo_studio.memory.probe_process import Answer, ask
from grpo_studio.memory.probe_settings import of_backend, of_one_process, reference_first
from grpo_studio.progress import Progress
from grpo_studio.settings import Settings
from grpo_studio.supervisor import with_whole_paths
from grpo_studio.temporary_folder import interrupted_by_signals, temporary_folder

PREFIX = ".probe-"


@dataclass
class Workplace:
    """What the children of one probe share.

    Args:
        asked: the run's settings; `config`: what is probed of them.
        rollout: what the first child told of the batch, which lies frozen in `batch`.
        start_seconds: what the slowest child took until it was done with loading.
    """

    asked: RunConfig
    config: RunConfig
    settings: Settings
    folder: Path
    device: Device
    environment: dict[str, str]
    progress: Progress
    rollout: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    start_seconds: float = 0.0

    @property
    def batch(self) -> Path:
        return self.folder / "batch.safetensors"

    def spec(self, config: RunConfig, **more: Any) -> dict[str, Any]:
        """What every child is told."""
        plain = config.model_dump(mode="json")
        spec = {"config": plain, "folder": str(self.folder), "batch": str(self.batch)}
        return spec | {"source": self.rollout.get("source")} | more


def open_workplace(
    config: RunConfig, settings: Settings, anyway: bool, progress: Progress, stack: ExitStack
) -> Workplace:
    """Devices, a folder and an environment for a probe, given back when `stack` is closed.

    Raises:
        StudioError: a run holds the devices (unless `anyway`), or the model cannot be fetched.
    """
    settings.require_writable()
    location = locate(config.model.id, settings.cache)
    if location.kind == "builtin" and not location.ready:
        fetch(BUILTIN_MODELS[location.id], settings.cache, progress)
    config = with_whole_paths(config)
    probed, notes = of_one_process(config)
    claimed = probe_claim(probed, settings, anyway, notes)
    stack.enter_context(interrupted_by_signals())
    folder = stack.enter_context(temporary_folder(settings.home, PREFIX))
    environment = os.environ | worker_environment(probed, claimed) | of_program(settings)
    return Workplace(config, probed, settings, folder, current_device(), environment, progress, notes=notes)


def sample_batch(place: Workplace, share: float) -> None:
    """Let a child sample, score and freeze the batch; `share` of all the work is done by then.

    Raises:
        TrainingError: it could not.
    """
    told = _teller(place, "batch", 0.0, share)
    answer = ask(
        "grpo_studio.training.probe_rollout_child", place.spec(place.config), place.folder, place.environment, told
    )
    if answer.error is not None:
        hint = "; use fewer prompts a step, shorter completions or a smaller model" if answer.memory else ""
        raise TrainingError(f"no batch could be sampled to probe with: {answer.error}{hint}")
    place.notes += answer.found.pop("notes")
    place.rollout = answer.found


def measure_backends(place: Workplace, backends: Sequence[str], begin: float, end: float) -> list[BackendResult]:
    """Each backend on the frozen batch, the reference first; given back in the order that was asked for."""
    gradient = place.folder / "gradient.bin"
    results: dict[str, BackendResult] = {}
    each = (end - begin) / len(backends)
    for number, backend in enumerate(reference_first(backends)):
        leaves = not gradient.exists()
        told = _teller(place, backend, begin + number * each, begin + (number + 1) * each)
        results[backend] = _measured(place, backend, gradient, leaves, told)
    return [results[backend] for backend in backends]


def _measured(place: Workplace, backend: str, gradient: Path, reference: bool, told: Any) -> BackendResult:
    try:
        config = of_backend(place.config, backend)
    except ConfigError as error:
        return BackendResult(backend=backend, error=str(error))
    began = time.monotonic()

    def tell(what: str) -> None:
        if what == "first pass":
            place.start_seconds = max(place.start_seconds, time.monotonic() - began)
        told(what)

    spec = place.spec(config, gradient=str(gradient), reference=reference)
    answer = ask("grpo_studio.training.probe_backend_child", spec, place.folder, place.environment, tell)
    place.notes += answer.notes
    return result_of(backend, answer)


def result_of(backend: str, answer: Answer) -> BackendResult:
    """What a child found, as far as it came; peaks that are known stay when memory ran out in a later phase."""
    return BackendResult(backend=backend, error=answer.error, **answer.found)


def _teller(place: Workplace, what: str, begin: float, end: float) -> Any:
    """Progress within one child: each thing that it tells brings it half of the rest nearer."""
    at = [begin]
    place.progress(f"{what}: starting", begin)

    def tell(doing: str) -> None:
        at[0] += (end - at[0]) / 3
        place.progress(f"{what}: {doing}", at[0])

    return tell


def remove_gradient(place: Workplace) -> None:
    """The gradient is as large as the model: it goes as soon as nothing is compared with it."""
    for name in ("gradient.bin", "gradient.bin.json"):
        with suppress(FileNotFoundError):
            (place.folder / name).unlink()
