"""`python -m grpo_studio evaluate`: a checkpoint of a run scored on the run's own held-out rows, against its start."""

from __future__ import annotations

import argparse
import time
from typing import Any

from grpo_studio import devices
from grpo_studio.checkpoints import BASE, Checkpoint, checkpoint_or_base
from grpo_studio.command_output import tell
from grpo_studio.config import RunConfig
from grpo_studio.errors import StudioError, UsageError
from grpo_studio.evaluation_passing import pass_rule
from grpo_studio.evaluation_store import write_evaluation
from grpo_studio.libraries import load_libraries
from grpo_studio.progress import Progress
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, find_run, run_folders
from grpo_studio.supervisor import state_of

MOST_ROWS, MOST_SAMPLES = 100_000, 1024


def add_evaluate_arguments(command: argparse.ArgumentParser) -> None:
    """The arguments of `evaluate` besides those of all commands."""
    command.add_argument("run", help="id of the run, an unambiguous part of it, or latest")
    command.add_argument(
        "--checkpoint",
        default="newest",
        metavar="K",
        help="a step, best, newest, final, or base for the model before training (default: newest)",
    )
    command.add_argument("--rows", type=int, help="held-out rows to score (default: evaluation.rows of the run)")
    command.add_argument("--samples", type=int, help="samples a row (default: evaluation.samples of the run)")


def evaluate(
    options: argparse.Namespace, settings: Settings, progress: Progress
) -> tuple[dict[str, Any], list[str], int]:
    """The JSON document, the lines for people, and the exit code.

    Raises:
        CheckpointError: the run has no such checkpoint, or it is not whole.
        StudioError: model, data or verifiers cannot be used, or the result cannot be written.
    """
    folder = find_run(settings.runs_dir, options.run)
    config = _with_size(folder.config(), options)
    checkpoint = checkpoint_or_base(folder, options.checkpoint)
    if busy := _holds_the_gpu(settings):
        tell(f"the run {busy} holds the GPU; both get slower and share its memory")
    began = time.monotonic()
    name = _scored(config, settings, folder, checkpoint, progress)
    from grpo_studio.evaluation_result import result  # it brings pandas, which no other command waits for

    return result(folder, config, name, time.monotonic() - began)


def _scored(
    config: RunConfig, settings: Settings, folder: RunFolder, checkpoint: Checkpoint | None, progress: Progress
) -> str:
    tell("loading the libraries")
    load_libraries()
    from grpo_studio.training.evaluate_run import evaluate_checkpoint
    from grpo_studio.training.scored_batch import evaluation_metrics

    groups = evaluate_checkpoint(config, settings, folder, checkpoint, tell, progress)
    metrics = evaluation_metrics(groups, pass_rule(config))
    name, step = (BASE, 0) if checkpoint is None else (checkpoint.name, checkpoint.step)
    data = {"rows": sum(group.split == "eval" for group in groups), "samples": config.evaluation.samples}
    if data["rows"] < config.evaluation.rows:
        tell(f"{data['rows']:,} rows are held out, fewer than the {config.evaluation.rows:,} that were asked for")
    return write_evaluation(folder, name, step, groups, metrics, data)


def _with_size(config: RunConfig, options: argparse.Namespace) -> RunConfig:
    """The run's settings with the rows and samples that were asked for."""
    size: dict[str, int] = {}
    for name, least, most in (("rows", 1, MOST_ROWS), ("samples", 0, MOST_SAMPLES)):
        value = getattr(options, name)
        if value is None:
            continue
        if not least <= value <= most:
            raise UsageError(f"--{name} is {value}; give {least} to {most:,}")
        size[name] = value
    return config.model_copy(update={"evaluation": config.evaluation.model_copy(update=size)})


def _holds_the_gpu(settings: Settings) -> str | None:
    """The run that trains on this machine's GPU just now; None on a CPU."""
    if not devices.visible_gpus():
        return None
    for folder in run_folders(settings.runs_dir):
        try:
            if state_of(folder).state in ("preparing", "running", "stopping"):
                return folder.run_id
        except StudioError:
            continue
    return None
