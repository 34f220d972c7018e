"""What the page of results asks the command line to evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grpo_studio.checkpoints import BASE, find_checkpoint
from grpo_studio.errors import UsageError
from grpo_studio.evaluate_command import MOST_ROWS, MOST_SAMPLES
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.ui import frame
from grpo_studio.ui.chosen import exact_run
from grpo_studio.ui.command_jobs import on_run
from grpo_studio.ui.run_menu import checkpoint_rows

LISTED = 100


def checkpoints_of(folder: RunFolder) -> list[dict[str, Any]]:
    """The whole checkpoints, newest first, as far as the list of choices goes."""
    wanted = ("name", "step", "final", "best", "score")
    return [{key: row[key] for key in wanted} for row in checkpoint_rows(folder)[:LISTED]]


def arguments_of(request: Mapping[str, Any], settings: Settings) -> list[str]:
    """The command's name and arguments.

    Raises:
        CheckpointError: the run has no such checkpoint.
        UsageError: a size is no whole number within its bounds.
    """
    folder = exact_run(settings, request)
    asked = frame.text_of(request, "checkpoint", 40) or "newest"
    if asked != BASE:
        find_checkpoint(folder, asked)
    options = [f"--checkpoint={asked}"]
    for name, least, most in (("rows", 1, MOST_ROWS), ("samples", 0, MOST_SAMPLES)):
        if request.get(name) is None:
            continue
        value = frame.number_of(request, name, least, most)
        if value is None:
            raise UsageError(f"{name} takes a whole number from {least} to {most:,}")
        options.append(f"--{name}={value}")
    return on_run("evaluate", folder.run_id, *options)
