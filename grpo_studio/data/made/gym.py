"""`reasoning_gym:<task>`: the tasks of Reasoning Gym as data sets, made in a process of their own and kept on disk.

A row is {prompt, answer, metadata, task}, as the verifier `reasoning_gym` reads it; for five tasks, where any solution
counts, `answer` is None.
"""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import metadata
from typing import Any, Final

from grpo_studio.config import DatasetSettings
from grpo_studio.data.made.gym_cache import GymCache
from grpo_studio.data.made.gym_process import ask
from grpo_studio.data.made.gym_tasks import TASKS, default_size, is_slow
from grpo_studio.data.made.params import form_field, quoted, refuse_config
from grpo_studio.data.rows import Row
from grpo_studio.data.sources import GYM_PREFIX
from grpo_studio.data.splitting import Numbered, set_apart
from grpo_studio.errors import DataError
from grpo_studio.naming import nearest_names
from grpo_studio.progress import Progress
from grpo_studio.shown import shown

GYM_COLUMNS: Final = ("prompt", "answer", "metadata", "task")
MOST_ROWS: Final = 1_000_000
_OWN_HELP: Final = {
    "seed": "Row i comes from seed + i, so seeds that lie close together share rows.",
    "size": "How many rows are made, those that are held out among them.",
}
_SEEN_BY_SCORER: Final = ("decimal_arithmetic", "puzzle24", "time_intervals")
"""Tasks whose scorers look at settings that the rows were made with."""


def gym_task(source: str) -> str:
    """The task of a source.

    Raises:
        DataError: there is no such task.
    """
    task = source.removeprefix(GYM_PREFIX)
    if task == "composite":
        raise DataError(f"{source} mixes other tasks and is no data set by itself; name one of them")
    if task not in TASKS:
        hint = nearest_names(task, TASKS)
        if hint.startswith("known"):
            hint = f"pick one of its {len(TASKS)}, such as chain_sum, gsm_symbolic or zebra_puzzles"
        raise DataError(f"Reasoning Gym has no task {quoted(task)}; {hint}")
    return task


def gym_rows(settings: DatasetSettings) -> Iterator[Row]:
    """The rows in their order, each made when it is asked for, unless it is kept on disk.

    Raises:
        DataError: the task is unknown, or it cannot be made with these settings.
    """
    task = gym_task(settings.source)
    refuse_config(settings)
    params = _params(task, settings)
    return _kept_or_made(settings.source, task, params, GymCache(task, _version(), params))


def split_gym(
    settings: DatasetSettings, progress: Progress | None = None
) -> tuple[list[Numbered], list[Numbered], int]:
    """Train and held-out rows with their numbers, and how many there are in all.

    Raises:
        DataError: as `gym_rows`, or nothing would be left to train on.
    """
    size = gym_size(settings)
    if settings.held_out >= size:
        slow = "; its rows take long to make" if is_slow(gym_task(settings.source)) else ""
        raise DataError(
            f"holding out {settings.held_out} of the {size} rows of {settings.source} leaves none to train on{slow}; "
            f"set dataset.held_out to {size // 5} or less, or dataset.params.size to more"
        )
    rows: list[Numbered] = []
    for number, row in enumerate(gym_rows(settings), start=1):
        rows.append((number, row))
        if progress is not None:
            progress(f"making rows of {settings.source}", number / size)
    train, held_out = set_apart(rows, settings, "prompt")
    return train[: settings.limit], held_out, len(rows)


def gym_size(settings: DatasetSettings) -> int:
    """How many rows there are. Raises DataError as `gym_rows` does."""
    size: int = _params(gym_task(settings.source), settings)["size"]
    return size


def gym_fields(source: str) -> list[dict[str, Any]]:
    """The settings of a task as a form shows them.

    Raises:
        DataError: there is no such task, or the library is not there.
    """
    task = gym_task(source)
    return [
        form_field(field.pop("name"), field.pop("kind"), field.pop("default"), **field)
        for field in map(dict, _fields_of(task))
    ]


def gym_reward(source: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The params of the verifier `reasoning_gym` for the rows of a source."""
    task = gym_task(source)
    config = {name: value for name, value in params.items() if name not in ("seed", "size")}
    return {"task": task} | ({"config": config} if config and task in _SEEN_BY_SCORER else {})


def _kept_or_made(source: str, task: str, params: dict[str, Any], cache: GymCache) -> Iterator[Row]:
    size, step = params["size"], _block(task)
    at = 0
    while at < size and _is_block(kept := cache.read(str(at)), min(step, size - at)):
        yield from kept
        at += len(kept)
    if at == size:
        return
    block: list[Row] = []
    with contextlib.closing(ask(source, {"task": task, "params": params, "first": at})) as answers:
        for answer in answers:
            block.append(answer["row"])
            at += 1
            if len(block) == step or at == size:
                cache.write(str(at - len(block)), block)
                block = []
            yield answer["row"]
    if at < size:
        raise DataError(
            f"making {source} ended at row {at + 1} without a reason, perhaps for want of memory; "
            "choose smaller settings in dataset.params"
        )


def _block(task: str) -> int:
    """Rows that are kept together: those that take about a second, and no more than a first look asks for."""
    return min(200, max(1, default_size(task) // 10))


def _is_block(value: Any, length: int) -> bool:
    return isinstance(value, list) and len(value) == length and all(set(GYM_COLUMNS) == {*row} for row in value)


def _params(task: str, settings: DatasetSettings) -> dict[str, Any]:
    """The settings as plain data, with a seed and a size."""
    chosen = {name: value for name, value in settings.params.items() if value is not None or name not in _OWN_HELP}
    params = {"seed": 0, "size": default_size(task)} | chosen
    for name, low, high in (("seed", 0, 2**31), ("size", 1, MOST_ROWS)):
        value = params[name]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise DataError(f"dataset.params.{name} is {quoted(value)}; give a whole number from {low} to {high}")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(params, allow_nan=False, default=_as_text))
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"dataset.params of {settings.source} is no plain data: {shown(str(error), 100)}") from error
    return plain


def _as_text(value: Any) -> str:
    """Dates and times, which YAML reads as such."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is no plain value")


def _fields_of(task: str) -> list[dict[str, Any]]:
    fields = _all_fields().get(task, [])
    for field in fields:
        if field["name"] in _OWN_HELP:
            field["help"] = _OWN_HELP[field["name"]]
            field["nullable"] = False
            field["min"] = 0 if field["name"] == "seed" else 1
            field["default"] = 0 if field["name"] == "seed" else default_size(task)
    return fields


@lru_cache(maxsize=1)
def _all_fields() -> dict[str, list[dict[str, Any]]]:
    """The settings of all tasks, which cost one import of the library."""
    cache = GymCache("settings", _version(), {})
    kept = cache.read("fields")
    if not isinstance(kept, dict):
        [answer] = ask("Reasoning Gym", {"describe": list(TASKS)})
        kept = answer["fields"]
        cache.write("fields", kept)
    fields: dict[str, list[dict[str, Any]]] = kept
    return fields


def _version() -> str:
    try:
        return metadata.version("reasoning-gym")
    except metadata.PackageNotFoundError as error:
        raise DataError("Reasoning Gym is not installed; install the package reasoning-gym") from error
