"""A branch: a new run that goes on from a checkpoint of another one with other settings."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from grpo_studio import resume_rules
from grpo_studio.checkpoints import Checkpoint, best_of, find_checkpoint, read_checkpoint, whole_checkpoints
from grpo_studio.config import RunConfig
from grpo_studio.config_files import read_config_file, with_overrides
from grpo_studio.disk import require_space, told_when_full
from grpo_studio.errors import CheckpointError, ConfigError, StoreError, StudioError
from grpo_studio.lifecycle_settings import require_sound
from grpo_studio.looks import WholeLook
from grpo_studio.preflight import check
from grpo_studio.progress import Progress
from grpo_studio.resume_rules import Change
from grpo_studio.rules import inspect
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, create_run, write_whole
from grpo_studio.store.writer import RunWriter
from grpo_studio.supervisor import enqueued, with_whole_paths

STAGING = ".branching-"
"""How the name of the folder begins in which a branch is made."""


def branch(
    folder: RunFolder,
    asked_checkpoint: str,
    overrides: Sequence[str],
    settings: Settings,
    name: str | None = None,
    progress: Progress | None = None,
) -> RunFolder:
    """Make a new run from a checkpoint ("5", "best", "newest") with changed settings, and queue it.

    Raises:
        StudioError: there is no such checkpoint, it cannot be trained on with these settings, or the run cannot be
            made; no run is left behind.
    """
    checkpoint, config, changes = _planned(folder, asked_checkpoint, overrides)
    settings.require_writable()
    report = check(config.model_dump(mode="json"), settings, WholeLook(progress, count_all=False))
    require_sound(report.problems, report.config)
    return enqueued(_made(folder, checkpoint, config, changes, settings, name), settings)


def branch_changes(
    folder: RunFolder, asked_checkpoint: str, overrides: Sequence[str]
) -> tuple[Checkpoint, list[Change]]:
    """The checkpoint that a branch would begin from, and the settings that would differ from those it was made with.

    Raises:
        StudioError: no such branch can be made.
    """
    checkpoint, _, changes = _planned(folder, asked_checkpoint, overrides)
    return checkpoint, changes


def _planned(folder: RunFolder, asked: str, overrides: Sequence[str]) -> tuple[Checkpoint, RunConfig, list[Change]]:
    checkpoint = _to_train_on(folder, asked)
    raw = read_config_file(folder.newest_config_path())
    wanted = inspect(with_overrides(raw, overrides))
    config = with_whole_paths(require_sound(wanted.problems, wanted.config))
    if reason := resume_rules.refusal_of_branch(checkpoint.manifest.settings, config):
        raise ConfigError(reason)
    if config.algorithm.steps <= checkpoint.step:
        raise ConfigError(
            f"algorithm.steps is {config.algorithm.steps}, and {checkpoint.name} has {checkpoint.step} steps already; "
            f"set algorithm.steps to {checkpoint.step + 1} or more"
        )
    # What was edited in the folder by hand differs too: the checkpoint tells with what it was made.
    known = inspect(raw).config or config
    before = resume_rules.flat(known) | dict(checkpoint.manifest.settings)
    return checkpoint, config, resume_rules.changes(before, resume_rules.flat(config))


def _to_train_on(folder: RunFolder, asked: str) -> Checkpoint:
    resumable = [one for one in whole_checkpoints(folder) if one.manifest.resumable]
    if asked == "newest" and resumable:
        return resumable[-1]
    if asked == "best" and (best := best_of(resumable)) is not None:
        return best
    found = find_checkpoint(folder, asked)
    if found.manifest.resumable:
        return found
    names = ", ".join(one.name for one in resumable)
    way = f"branch from {names}" if resumable else "set checkpoint.every for a run that is to be branched"
    raise CheckpointError(f"{found.name} of {folder.run_id} holds weights without an optimizer; {way}")


def _made(
    parent: RunFolder,
    checkpoint: Checkpoint,
    config: RunConfig,
    changes: Sequence[Change],
    settings: Settings,
    name: str | None,
) -> RunFolder:
    """The new run's folder, made aside and renamed when it is whole."""
    aside = settings.runs_dir / f"{STAGING}{secrets.token_hex(4)}"
    try:
        made = create_run(aside, config, name or f"branch-at-{checkpoint.step}")
        _take_over(checkpoint, made)
        about = {
            "run": parent.run_id,
            "checkpoint": checkpoint.name,
            "step": checkpoint.step,
            "changes": [asdict(change) for change in changes],
        }
        write_whole(made.path / "branch.json", json.dumps(about, ensure_ascii=False, indent=1))
        writer = RunWriter(made.database, attempt=1)
        told = "; ".join([f"branches from {parent.run_id} after step {checkpoint.step}", *map(str, changes)])
        writer.attempt_began(checkpoint.step, checkpoint.name, told, data=about)
        writer.close()
        whole = RunFolder(settings.runs_dir / made.run_id)
        made.path.rename(whole.path)
    except OSError as error:
        if isinstance(error, StudioError):
            raise
        raise StoreError(f"cannot make a branch in {settings.runs_dir}: {error}; check its disk") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return whole


def _take_over(checkpoint: Checkpoint, made: RunFolder) -> None:
    """Hard links where the disk has them: files of a checkpoint are replaced, never changed. Else a copy."""
    target = made.checkpoints / checkpoint.name
    try:
        shutil.copytree(checkpoint.path, target, copy_function=os.link)
    except (OSError, shutil.Error):
        shutil.rmtree(target, ignore_errors=True)
        what = f"a copy of {checkpoint.name}"
        require_space(made.path, checkpoint.bytes, what)
        with told_when_full(made.path, what, checkpoint.bytes):
            _copy(checkpoint.path, target)
    read_checkpoint(target)  # a run that still trains may have deleted it meanwhile


def _copy(source: Path, target: Path) -> None:
    try:
        shutil.copytree(source, target)
    except shutil.Error as error:  # one for all files: the first tells
        raise OSError(str(error.args[0][0][2])) from error
