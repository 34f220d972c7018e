"""Data sets that are made in place: `builtin:` names and the tasks of Reasoning Gym. No network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from grpo_studio.config import BUILTIN_DATASET, DatasetSettings
from grpo_studio.data.made.arithmetic import LEVELS, ArithmeticParams, builtin_rows
from grpo_studio.data.made.countdown import (
    COUNTDOWN,
    COUNTDOWN_COLUMNS,
    CountdownParams,
    countdown_rows,
    split_countdown,
)
from grpo_studio.data.made.gym import GYM_COLUMNS, gym_fields, gym_reward, gym_rows, gym_size, split_gym
from grpo_studio.data.made.gym_tasks import TASKS, default_size, is_slow
from grpo_studio.data.made.params import described, quoted, read_params
from grpo_studio.data.rows import Row, RowStream
from grpo_studio.data.sources import GYM_PREFIX, kind_of
from grpo_studio.data.splitting import Numbered
from grpo_studio.errors import DataError
from grpo_studio.naming import nearest_names
from grpo_studio.progress import Progress

BUILTIN_NAMES = (BUILTIN_DATASET, COUNTDOWN)


def made_rows(
    settings: DatasetSettings, progress: Progress | None = None
) -> tuple[list[Numbered], list[Numbered], int]:
    """Train and held-out rows with their numbers, in a fixed order, and how many rows there are in all.

    Which rows are held out follows from the question and `held_out_seed` alone. `progress` is called with what is
    being made and the share that is done; it ends the work by raising.

    Raises:
        DataError: an unknown name, or settings that it does not take.
    """
    if kind_of(settings.source) == "reasoning_gym":
        return split_gym(settings, progress)
    if _builtin(settings.source) == COUNTDOWN:
        return split_countdown(settings)
    train, held_out, total = builtin_rows(settings)
    numbered = list(enumerate([*train, *held_out], start=1))
    return numbered[: len(train)], numbered[len(train) :], total


def open_made(settings: DatasetSettings) -> RowStream:
    """All rows by their numbers; those of countdown and Reasoning Gym are made as they are asked for.

    Raises:
        DataError: as `made_rows`, in part only when the rows are walked through.
    """
    if kind_of(settings.source) == "reasoning_gym":
        return _counted(gym_rows(settings), GYM_COLUMNS, gym_size(settings))
    if _builtin(settings.source) == COUNTDOWN:
        size = read_params(CountdownParams, settings).size
        return _counted((row for row, _ in countdown_rows(settings)), COUNTDOWN_COLUMNS, size)
    train, held_out, _ = builtin_rows(settings)
    return RowStream(iter([*train, *held_out]))


def made_sources() -> list[dict[str, str]]:
    """All data sets that are made in place, for a list to pick from: {value, title, note}."""
    levels = "; ".join(f"{number}: {level.title}" for number, level in LEVELS.items())
    found = [
        {"value": BUILTIN_DATASET, "title": "Arithmetic", "note": f"Arithmetic: {levels}"},
        {"value": COUNTDOWN, "title": "Countdown", "note": "Countdown: an equation that reaches a target"},
    ]
    for task, category in sorted(TASKS.items()):
        title = task.replace("_", " ").capitalize()
        slow = f", slow: {default_size(task)} rows unless set" if is_slow(task) else ""
        found.append({"value": f"{GYM_PREFIX}{task}", "title": title, "note": f"{title}: {category}{slow}"})
    return found


def made_fields(source: str) -> list[dict[str, Any]]:
    """The settings in `dataset.params` of a source as a form shows them; none for a source that is not made in place.

    Raises:
        DataError: an unknown name.
    """
    match kind_of(source):
        case "reasoning_gym":
            return gym_fields(source)
        case "builtin":
            return described(CountdownParams if _builtin(source) == COUNTDOWN else ArithmeticParams)
        case _:
            return []


def made_reward(source: str, params: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """The verifier that judges a source made in place, as {verifier, params}; None for any other source.

    Args:
        source: the data set.
        params: its `dataset.params`, of which some scorers want to know.

    Raises:
        DataError: an unknown name.
    """
    match kind_of(source):
        case "reasoning_gym":
            return {"verifier": "reasoning_gym", "params": gym_reward(source, params or {})}
        case "builtin":
            return {"verifier": "countdown" if _builtin(source) == COUNTDOWN else "math_numeric", "params": {}}
        case _:
            return None


def _builtin(source: str) -> str:
    if source not in BUILTIN_NAMES:
        raise DataError(f"no built-in data set {quoted(source)}; {nearest_names(source, BUILTIN_NAMES)}")
    return source


def _counted(rows: Iterator[Row], columns: tuple[str, ...], size: int) -> RowStream:
    """A stream that knows how far it has come."""
    done = 0

    def counted() -> Iterator[Row]:
        nonlocal done
        for row in rows:
            done += 1
            yield row

    return RowStream(counted(), columns, share=lambda: done / size)
