"""A sweep: the frozen batch made larger until memory runs out, each backend and number format in its own process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psutil

from grpo_studio.config import RunConfig
from grpo_studio.errors import ConfigError, TrainingError
from grpo_studio.memory.probe_document import BackendResult, Sweep, SweepLine, SweepPoint
from grpo_studio.memory.probe_process import ask
from grpo_studio.memory.probe_run import Workplace
from grpo_studio.memory.probe_settings import of_backend
from grpo_studio.memory.sweep_plan import Frozen, SweepAsked, planned_line, spoken

LEFT_FREE = 1 << 30
"""Bytes of a machine's memory that a sweep on its CPU leaves alone."""


class SweepRefusedError(TrainingError):
    """A sweep would take longer than it was allowed to."""


def frozen_sizes(place: Workplace) -> Frozen:
    """The sizes of the batch that was frozen."""
    config = place.config
    return Frozen(
        config.completions_per_step,
        config.effective_micro_batch(),
        place.rollout["prompt_tokens"],
        place.rollout["completion_tokens"],
    )


def require_time(place: Workplace, asked: SweepAsked, results: Sequence[BackendResult]) -> None:
    """Say how long the sweep will take.

    Raises:
        SweepRefusedError: longer than `asked.minutes`, and not `anyway`.
    """
    known = [one for one in results if one.seconds is not None and one.peak_by_phase]
    if not known:
        raise SweepRefusedError("no backend could be measured on the frozen batch, so there is nothing to sweep")
    limit, frozen, device = _limit(place), frozen_sizes(place), place.device.kind
    lines = [
        planned_line(one if one in known else known[0], frozen, asked, device, limit, place.start_seconds)
        for one in results
    ]
    count = max(1, len(asked.dtypes))
    seconds = count * sum(line.seconds for line in lines)
    about = f"the sweep over {asked.axis} will take about {spoken(seconds)}"
    place.progress(f"{about} (up to {max(line.largest for line in lines):,})", place_share(0, 1))
    if seconds > 60 * asked.minutes and not asked.anyway:
        raise SweepRefusedError(
            f"{about}, longer than --minutes={asked.minutes:g} allows; give --to for a smaller end, more --minutes, or "
            "--anyway"
        )


def place_share(number: int, count: int) -> float:
    """The share of all the work that is done when so many of the sweep's lines are: the second half of it."""
    return 0.5 + 0.5 * number / count


def sweep(place: Workplace, asked: SweepAsked, results: Sequence[BackendResult]) -> Sweep:
    """All lines, one after the other; a line whose process is killed ends that line only."""
    dtypes = asked.dtypes or (str(place.rollout["dtype"]),)
    wanted = [(result.backend, dtype) for dtype in dtypes for result in results]
    allowed = None if asked.anyway else 60 * asked.minutes
    began, lines = time.monotonic(), []
    for number, (backend, dtype) in enumerate(wanted):
        share = place_share(number, len(wanted))
        place.progress(f"sweep, {backend} in {dtype}", share)
        left = None if allowed is None else max(0.0, allowed - (time.monotonic() - began))
        lines.append(_line(place, asked, backend, dtype, left, share))
    return Sweep(axis=asked.axis, lines=lines)


def _line(place: Workplace, asked: SweepAsked, backend: str, dtype: str, left: float | None, share: float) -> SweepLine:
    points: list[SweepPoint] = []
    trying = [0]
    ended: dict[str, Any] = {}

    def take(found: dict[str, Any]) -> None:
        if "trying" in found:
            trying[0] = found["trying"]
            place.progress(f"sweep, {backend} in {dtype}: {found['trying']:,} {asked.axis}", share)
        if "point" in found:
            points.append(SweepPoint(**found["point"]))
        ended.update(found.get("ended", {}))

    try:
        config: RunConfig = of_backend(place.config, backend, dtype)
    except ConfigError as error:
        return SweepLine(backend=backend, dtype=dtype, points=[], ended_by="error", reason=str(error))
    spec = place.spec(config, axis=asked.axis, to=asked.to, limit=_bound(place), seconds=left)
    answer = ask(
        "grpo_studio.training.probe_sweep_child", spec, place.folder, place.environment, lambda what: None, take
    )
    points.sort(key=lambda point: point.x)
    largest = points[-1].x if points else None
    if answer.error is not None:
        ended = {"ended_by": "memory" if answer.memory else "error", "end_x": trying[0] or None, "reason": answer.error}
    return SweepLine(backend=backend, dtype=dtype, points=points, largest=largest, **ended)


def _limit(place: Workplace) -> int | None:
    """Bytes that a sweep may expect: the card's, or what is free of the machine's memory."""
    return (place.device.total or None) if place.device.kind == "cuda" else _bound(place)


def _bound(place: Workplace) -> int | None:
    """Bytes past which nothing is tried: a GPU says by itself when it is full, a CPU takes the machine down with it."""
    if place.device.kind == "cuda":
        return None
    return max(0, psutil.virtual_memory().available - LEFT_FREE)
