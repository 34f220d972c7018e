"""The run that a request names. Requests come from anybody: an id is looked up, never joined to a path unchecked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grpo_studio.errors import RunNotFoundError
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RUN_ID, RunFolder, find_run, is_run

LONGEST_ID = 200


def chosen_run(settings: Settings, request: Mapping[str, Any]) -> RunFolder:
    """The run that a request names by `run`, without listing all runs when the id is whole.

    Raises:
        RunNotFoundError: there is none.
    """
    asked = request.get("run")
    if not isinstance(asked, str) or not 0 < len(asked) <= LONGEST_ID:
        raise RunNotFoundError("no such run")
    if RUN_ID.fullmatch(asked) and is_run(settings.runs_dir / asked):
        return RunFolder(settings.runs_dir / asked)
    return find_run(settings.runs_dir, asked)


def exact_run(settings: Settings, request: Mapping[str, Any]) -> RunFolder:
    """As `chosen_run`, but by its whole id alone: for what changes a run.

    Raises:
        RunNotFoundError: there is none of exactly that id.
    """
    folder = chosen_run(settings, request)
    if folder.run_id != request.get("run"):
        raise RunNotFoundError(f"{folder.run_id} was not named by its whole id; look at the list of runs")
    return folder
