"""Launch, stop, find again: what the command line and the app do with runs. Holds no process; all state is on disk."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from grpo_studio import dispatcher, run_facts, run_lock
from grpo_studio.catalog import BUILTIN_MODELS, fetch, locate
from grpo_studio.config import RunConfig
from grpo_studio.data import kind_of
from grpo_studio.errors import StoreError, StudioError
from grpo_studio.job_queue import JobQueue
from grpo_studio.pair_records import find_pair, record_of
from grpo_studio.progress import Progress
from grpo_studio.reward_models import with_whole_path
from grpo_studio.run_facts import facts_of, state_of
from grpo_studio.run_state import RunState
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, create_run, write_whole
from grpo_studio.store.reader import newest_attempt
from grpo_studio.store.writer import RunWriter
from grpo_studio.worker_process import signal_worker

__all__ = ["facts_of", "state_of", "stop", "submit", "summary", "wait_until_ended", "with_whole_paths", "withdraw"]

NOTED_WITHIN = 3.0
"""Seconds that a dispatcher is given to note how a dead worker ended."""
NOT_IN_THE_QUEUE = "was begun, and is in no queue of this home folder"


def submit(
    config: RunConfig, settings: Settings, name: str | None = None, progress: Progress | None = None
) -> RunFolder:
    """Queue a new run and make sure that a dispatcher serves the queue.

    A built-in model's file is fetched first, so that a run never starts without it.

    Raises:
        StudioError: the model cannot be fetched or the folder cannot be made; no run is left behind.
    """
    settings.require_writable()
    have_model(config, settings, progress)
    return enqueued(create_run(settings.runs_dir, with_whole_paths(config), name), settings)


def have_model(config: RunConfig, settings: Settings, progress: Progress | None = None) -> None:
    """See that the file of a built-in model is here.

    Raises:
        StudioError: it cannot be fetched.
    """
    location = locate(config.model.id, settings.cache)
    if location.kind == "builtin" and not location.ready:
        fetch(BUILTIN_MODELS[location.id], settings.cache, progress)


def enqueued(folder: RunFolder, settings: Settings) -> RunFolder:
    """The run, which was made just now, in a queue that is served.

    Raises:
        StudioError: it cannot be queued, or nothing serves the queue; the run is then gone again.
    """
    queue = JobQueue(settings.queue_path)
    try:
        queue.add(folder.path)
        dispatcher.ensure_running(settings)
    except StudioError:
        queue.remove(folder.path, only_waiting=True)
        shutil.rmtree(folder.path, ignore_errors=True)
        raise
    return folder


def with_whole_paths(config: RunConfig) -> RunConfig:
    """The configuration with local paths made absolute: the worker runs in another folder than who asked for it."""
    model, source = config.model, config.dataset.source
    if Path(model.id).expanduser().exists():
        model = model.model_copy(update={"id": str(Path(model.id).expanduser().resolve())})
    if kind_of(source) == "file":
        source = str(Path(source).expanduser().resolve())
    rewards = tuple(with_whole_path(reward) for reward in config.rewards)
    dataset = config.dataset.model_copy(update={"source": source})
    return config.model_copy(update={"model": model, "dataset": dataset, "rewards": rewards})


def stop(folder: RunFolder, settings: Settings) -> None:
    """Ask a run to stop: take it out of the queue, or signal its worker. Returns at once; asking twice does no harm.

    The worker finishes its step and saves a checkpoint; the dispatcher kills its process group after a grace period.
    """
    state = state_of(folder)
    if state.state == "queued" and withdraw(folder, settings):
        return
    if state.ended:
        return
    if not folder.stop_request.exists():
        write_whole(folder.stop_request, str(time.time()))
    signal_worker(folder)
    dispatcher.ensure_running(settings)


def summary(folder: RunFolder, settings: Settings) -> dict[str, Any]:
    """A run in brief, as `run_facts.summary`, with its `place` in the queue: 1 is the next one, None does not wait.

    `pair` is what a half of two runs that differ in one setting says of that, with `other`, the id of the other half,
    None when that is not here; None for any other run.
    """
    found = run_facts.summary(folder)
    place, told = None, ""
    if found["state"] == "queued":
        place, told = _place(folder, settings)
    return found | {"place": place, "reason": told or found["reason"], "pair": _pair(folder, settings)}


def _pair(folder: RunFolder, settings: Settings) -> dict[str, Any] | None:
    """What a half says of its pair, and whether the other half is here."""
    record = record_of(folder)
    if record is None:
        return None
    other = find_pair(settings, record.pair).folders[0 if record.side == "B" else 1]
    return record.as_dict() | {"other": None if other is None else other.run_id}


def _place(folder: RunFolder, settings: Settings) -> tuple[int | None, str]:
    """The place of a run that says that it waits, and what is wrong with that, if anything."""
    try:
        jobs = JobQueue(settings.queue_path).jobs()
    except StoreError as error:
        return None, str(error)
    mine = next((job for job in jobs if job.run_dir == folder.path), None)
    if mine is not None:  # without a place it was taken, and its worker is being started
        return mine.place, ""
    return None, f"{NOT_IN_THE_QUEUE}; put it there: resume {folder.run_id}"


def withdraw(folder: RunFolder, settings: Settings) -> bool:
    """Take a run that waits out of the queue; it is stopped then. False when it has been started, or did not wait.

    Raises:
        StoreError: the queue or the run cannot be written.
    """
    queue = JobQueue(settings.queue_path)
    waited = queue.remove(folder.path, only_waiting=True)
    if not waited and queue.has(folder.path):
        return False
    with run_lock.held(folder, run_lock.PATIENCE) as mine:
        if not mine or state_of(folder).state != "queued":
            return False
        began = newest_attempt(folder.database)
        onward = f"went on after step {began.from_step}" if began.from_step else "began"
        writer = RunWriter(folder.database, attempt=began.attempt)
        writer.event("run_stopped", f"taken out of the queue before it {onward}")
        writer.close()
    return True


def wait_until_ended(folder: RunFolder, settings: Settings, poll: float = 0.5) -> RunState:
    """Block until the run has ended and what served it is done with it; its state then.

    A worker is dead a moment before the dispatcher has noted how it ended.
    """
    while not (state := state_of(folder)).ended:
        time.sleep(poll)
    queue, deadline = JobQueue(settings.queue_path), time.monotonic() + NOTED_WITHIN
    while time.monotonic() < deadline and queue.has(folder.path):
        time.sleep(0.1)
        state = state_of(folder)
    return state
