"""`python -m grpo_studio.training.probe_backend_child PARENT SPEC`: one loss backend on the frozen batch.

Every fact is told as soon as it is known: if this process is killed for memory, what came before stays.
"""

from __future__ import annotations

import math
import statistics
import sys
from pathlib import Path
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.errors import DiskFullError, TrainingError
from grpo_studio.training.probe_batch import thaw
from grpo_studio.training.probe_channel import Channel, answer
from grpo_studio.training.probe_gradient import difference, norm, write_gradient
from grpo_studio.training.probe_measure import Step
from grpo_studio.training.probe_trainer import probe_trainer

QUICK = 5.0
"""Seconds up to which a pass is repeated REPEATS times for the median; a longer one is timed once."""
REPEATS = 3


def main(spec: dict[str, Any], channel: Channel) -> None:
    """Loss and gradient first, then time, then peaks."""
    config, folder = RunConfig.model_validate(spec["config"]), Path(spec["folder"])
    channel.tell("loading the model")
    trainer, _ = probe_trainer(config, spec["source"], folder / "backend")
    step = Step(trainer)
    batch = thaw(Path(spec["batch"]), trainer.accelerator.device)
    parts = step.micro_batches(batch)
    channel.tell("first pass")
    loss, size = step.update(parts), norm(step.model)
    if not (math.isfinite(loss) and math.isfinite(size)):
        raise TrainingError(f"the loss is {loss:g}, the norm of its gradient {size:g}; use model.dtype=float32")
    channel.found({"loss": loss, "grad_norm": size})
    _compare(step.model, Path(spec["gradient"]), bool(spec["reference"]), channel)
    channel.tell("timing")
    seconds = [step.timed(parts)]
    while len(seconds) < REPEATS and seconds[0] < QUICK:
        seconds.append(step.timed(parts))
    channel.found({"seconds": statistics.median(seconds)})
    channel.tell("measuring memory")
    step.settle()
    channel.found({"held": step.held()})
    peaks = step.peaks(batch, parts, lambda found: channel.found({"peak_by_phase": dict(found)}))
    channel.found({"peak_bytes": max(peaks.values())})


def _compare(model: Any, path: Path, reference: bool, channel: Channel) -> None:
    """The reference leaves its gradient in a file; the others are held against it, where it is there."""
    if reference:
        try:
            write_gradient(model, path)
        except DiskFullError as error:
            channel.found({"note": f"gradients were not compared: {error}"})
        else:
            channel.found({"grad_relative_difference": 0.0})
    elif path.exists():
        channel.found({"grad_relative_difference": difference(model, path)})


if __name__ == "__main__":
    sys.exit(answer(sys.argv[1:], main))
