"""Two runs that differ in one setting: started together, queued one after the other, found again by their records.

Both folders are made aside and come to their places whole. What a kill in between can leave is a half without its
queue or without its other half; it says so itself, and `pair_records` shows it.
"""

from __future__ import annotations

import json
import secrets
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from grpo_studio import dispatcher
from grpo_studio.config import RunConfig
from grpo_studio.errors import ConfigError, StoreError, StudioError
from grpo_studio.job_queue import JobQueue
from grpo_studio.looks import ScanCache, WholeLook
from grpo_studio.pair_check import CheckedPair, check_pair
from grpo_studio.pair_records import PAIR_FILE, SIDES, Pair, PairRecord, find_pair, pairs_of, record_of, same_pair
from grpo_studio.pair_settings import value_text
from grpo_studio.preflight import check
from grpo_studio.progress import Progress
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, create_run, slug, write_whole
from grpo_studio.store.writer import RunWriter
from grpo_studio.supervisor import have_model

__all__ = [
    "Pair",
    "PairRecord",
    "find_pair",
    "pairs_of",
    "record_of",
    "same_pair",
    "start_checked",
    "start_pair",
]

STAGING = ".pairing-"
ABANDONED_AFTER = 3600.0
"""Seconds after which a folder in which a pair was being made is what a killed start left."""
LONGEST_NAME = 24


def start_pair(
    config: RunConfig,
    settings: Settings,
    field: str,
    values: Sequence[Any],
    name: str | None = None,
    progress: Progress | None = None,
) -> Pair:
    """Check both settings, then start two runs that differ in `field` alone.

    Raises:
        StudioError: a setting is wrong, a model cannot be fetched, or the runs cannot be made; none is left behind.
    """
    look = WholeLook(progress, count_all=False, scans=ScanCache())
    both = check_pair(
        config.model_dump(mode="json"), field, (values[0], values[1]), lambda data: check(data, settings, look)
    )
    return start_checked(both, settings, name, progress)


def start_checked(
    checked: CheckedPair, settings: Settings, name: str | None = None, progress: Progress | None = None
) -> Pair:
    """Start the two runs of settings that were checked.

    Raises:
        StudioError: as `start_pair`.
    """
    a, b = checked.configs
    if not checked.ok or a is None or b is None:
        raise ConfigError("; ".join(map(str, checked.problems)))
    settings.require_writable()
    for config in (a, b):
        have_model(config, settings, progress)
    _clear_abandoned(settings.runs_dir)
    pair = _made(checked, (a, b), settings, name or "pair")
    _queued(pair, settings)
    return pair


def _made(checked: CheckedPair, configs: tuple[RunConfig, RunConfig], settings: Settings, name: str) -> Pair:
    """Both run folders in their places, or none."""
    aside = settings.runs_dir / f"{STAGING}{secrets.token_hex(4)}"
    placed: list[RunFolder] = []
    try:
        made = [
            create_run(aside, config, f"{slug(name)[:LONGEST_NAME]}-{side}-{value_text(value)}")
            for side, config, value in zip(SIDES, configs, checked.values, strict=True)
        ]
        pair_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{slug(name)[:LONGEST_NAME].strip('-')}-{secrets.token_hex(2)}"
        runs = (made[0].run_id, made[1].run_id)
        for side, folder in zip(SIDES, made, strict=True):
            _describe(folder, PairRecord(pair_id, side, checked.field, checked.values, runs))
        for folder in made:
            whole = RunFolder(settings.runs_dir / folder.run_id)
            folder.path.rename(whole.path)
            placed.append(whole)
    except BaseException as error:
        for folder in placed:
            shutil.rmtree(folder.path, ignore_errors=True)
        if isinstance(error, OSError) and not isinstance(error, StudioError):
            raise StoreError(f"cannot make two runs in {settings.runs_dir}: {error}; check its disk") from error
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return Pair(pair_id, checked.field, checked.values, runs, (placed[0], placed[1]))


def _describe(folder: RunFolder, record: PairRecord) -> None:
    """Write down in a half which it is, for programs and, as an event, for people."""
    write_whole(folder.path / PAIR_FILE, json.dumps(record.as_dict(), ensure_ascii=False, indent=1))
    place = SIDES.index(record.side)
    own, other = value_text(record.values[place]), value_text(record.values[1 - place])
    writer = RunWriter(folder.database, attempt=1)
    try:
        writer.event(
            "pair",
            f"{record.side} of two runs that differ in {record.field}: {own} here, {other} in {record.runs[1 - place]}",
            data=record.as_dict(),
        )
    finally:
        writer.close()


def _queued(pair: Pair, settings: Settings) -> None:
    """Both runs in a queue that is served, A before B; or neither, and both folders are gone again."""
    queue = JobQueue(settings.queue_path)
    paths = [folder.path for folder in pair.folders if folder is not None]
    try:
        queue.add_in_order(paths)
        dispatcher.ensure_running(settings)
    except BaseException:
        _take_back(queue, paths)
        raise


def _take_back(queue: JobQueue, paths: Sequence[Path]) -> None:
    """Out of the queue and off the disk, unless something serves the queue after all and has begun with them."""
    for path in paths:
        with suppress(StudioError):  # a queue that cannot be used holds nothing
            if not queue.remove(path, only_waiting=True) and queue.has(path):
                return
        shutil.rmtree(path, ignore_errors=True)


def _clear_abandoned(runs_dir: Path) -> None:
    for left in runs_dir.glob(f"{STAGING}*"):
        with suppress(OSError):
            if not left.is_symlink() and time.time() - left.stat().st_mtime > ABANDONED_AFTER:
                shutil.rmtree(left, ignore_errors=True)
