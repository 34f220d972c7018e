"""From which checkpoint and with which settings a run goes on: what a resume and a branch find before they begin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grpo_studio.checkpoint_files import SAVING
from grpo_studio.checkpoints import NAME, Checkpoint, newest_resumable, read_checkpoint, whole_checkpoints
from grpo_studio.config import RunConfig
from grpo_studio.config_files import read_config_file, with_overrides
from grpo_studio.engine_preflight import machine_problems
from grpo_studio.errors import CheckpointError, ConfigError, UsageError
from grpo_studio.problem import Problem
from grpo_studio.rules import inspect
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder

PROBLEMS_TOLD = 3


def newest_to_resume(folder: RunFolder) -> tuple[Checkpoint, list[str]]:
    """The newest whole checkpoint that training can go on from, and what is wrong with those after it.

    Raises:
        CheckpointError: there is none; a run never begins anew at step 0.
    """
    found = newest_resumable(folder)
    broken = _broken_after(folder, 0 if found is None else found.step)
    if found is not None:
        return found, [f"{problem}, so it was passed over" for problem in broken]
    anew = f"start a new run with its settings: train --config {folder.newest_config_path()}"
    if broken:
        raise CheckpointError(f"{folder.run_id} has nothing to go on from: {', and '.join(broken)}; {anew}")
    if whole := whole_checkpoints(folder):
        names = ", ".join(one.name for one in whole)
        raise CheckpointError(
            f"{folder.run_id} has nothing to go on from: {names} holds weights without an optimizer; {anew}"
        )
    every = folder.config().checkpoint.every
    saved = f"checkpoint.every is {every}" + (", and it ended before the first one" if every else "")
    raise CheckpointError(f"{folder.run_id} has no checkpoint to go on from ({saved}); {anew}")


def changed_settings(folder: RunFolder, overrides: Iterable[str], attempt: int) -> tuple[RunConfig, RunConfig]:
    """The settings that an attempt of a run has, and those with the overrides put in.

    Raises:
        UsageError: an override names no setting.
        ConfigError: the settings as they lie in the folder, or those that are wanted, are wrong.
    """
    paths = [folder.config_path_of(number) for number in range(attempt, 0, -1)]
    path = next((path for path in paths if path.exists()), folder.config_path)
    raw = read_config_file(path)
    before, after = inspect(raw), inspect(with_overrides(raw, overrides))
    return (
        require_sound(before.problems, before.config, f"the settings in {path}"),
        require_sound(after.problems, after.config),
    )


def require_known(overrides: Iterable[str]) -> None:
    """Refuse overrides that name no setting, whatever else stands against them.

    Raises:
        UsageError: one does.
    """
    if unknown := [problem for problem in inspect(with_overrides({}, overrides)).problems if problem.unknown_key]:
        require_sound(unknown, None)


def checked_here(config: RunConfig, settings: Settings) -> None:
    """Refuse what this machine cannot do: packages, devices, servers.

    Raises:
        ConfigError: something is missing.
    """
    notes: list[str] = []
    require_sound(list(machine_problems(config, settings, notes)), config)


def require_sound(problems: Sequence[Problem], config: RunConfig | None, whose: str = "") -> RunConfig:
    """The configuration, when nothing is wrong with it.

    Raises:
        UsageError: a setting does not exist.
        ConfigError: a setting is wrong; the message tells the first ones.
    """
    if config is not None and not problems:
        return config
    kind = UsageError if any(problem.unknown_key for problem in problems) else ConfigError
    first, *others = problems
    more = f" (also wrong: {', '.join(problem.field for problem in others[:PROBLEMS_TOLD])})" if others else ""
    raise kind(f"{whose}{': ' if whose else ''}{first.field}: {first.message}{more}; {first.fix}")


def _broken_after(folder: RunFolder, step: int) -> list[str]:
    """What is wrong with each checkpoint of a later step, newest first."""
    if not folder.checkpoints.is_dir():
        return []
    found: list[tuple[int, str]] = []
    for entry in folder.checkpoints.iterdir():
        name = entry.name.removeprefix(SAVING)
        number = NAME.fullmatch(name)
        if number is None or int(number[1]) <= step:
            continue
        if name != entry.name:
            found.append((int(number[1]), f"the checkpoint {name} is half-written: the run ended while it was saved"))
            continue
        try:
            read_checkpoint(entry)
        except CheckpointError as error:
            found.append((int(number[1]), str(error)))
    return [problem for _, problem in sorted(found, reverse=True)]
