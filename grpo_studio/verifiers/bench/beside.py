"""What already computes on this machine: a model that is sampled beside a run may take the memory that it needs."""

from __future__ import annotations

from contextlib import suppress

from grpo_studio.devices import visible_gpus
from grpo_studio.errors import ModelError, StoreError
from grpo_studio.settings import Settings
from grpo_studio.store.folder import run_folders
from grpo_studio.worker_process import is_running


def living_run(settings: Settings) -> str:
    """The id of the newest run whose worker lives on this machine, whatever it does; empty when there is none."""
    for folder in run_folders(settings.runs_dir):
        with suppress(StoreError):  # a damaged folder says nothing, and must not hold up what concerns others
            if is_running(folder.process()):
                return folder.run_id
    return ""


def require_free_gpu(settings: Settings) -> str:
    """What to know about sampling now: empty, or that a run shares the CPU, where both fit but take longer.

    Raises:
        ModelError: a run has the GPU.
    """
    run = living_run(settings)
    if not run:
        return ""
    if visible_gpus():
        raise ModelError(f"run {run} has the GPU; sample when it has ended, or stop it first")
    return f"slow, for run {run} uses this CPU too"
