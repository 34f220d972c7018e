"""Launch, stop, find again: what the command line and the app do with runs. Holds no process; all state is on disk."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from grpo_studio import dispatcher
from grpo_studio.catalog import BUILTIN_MODELS, fetch, locate
from grpo_studio.config import RunConfig
from grpo_studio.data import kind_of
from grpo_studio.errors import StoreError, StudioError
from grpo_studio.job_queue import JobQueue
from grpo_studio.progress import Progress
from grpo_studio.reward_models import with_whole_path
from grpo_studio.run_state import RunFacts, RunState, derive
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, create_run, write_whole
from grpo_studio.store.reader import RunReader, newest_attempt
from grpo_studio.store.records import AttemptStart
from grpo_studio.store.writer import RunWriter
from grpo_studio.worker_process import is_running, signal_worker

NOTED_WITHIN = 3.0
"""Seconds that a dispatcher is given to note how a dead worker ended."""


def submit(
    config: RunConfig, settings: Settings, name: str | None = None, progress: Progress | None = None
) -> RunFolder:
    """Queue a new run and make sure that a dispatcher serves the queue.

    A built-in model's file is fetched first, so that a run never starts without it.

    Raises:
        StudioError: the model cannot be fetched or the folder cannot be made; no run is left behind.
    """
    settings.require_writable()
    location = locate(config.model.id, settings.cache)
    if location.kind == "builtin" and not location.ready:
        fetch(BUILTIN_MODELS[location.id], settings.cache, progress)
    folder = create_run(settings.runs_dir, with_whole_paths(config), name)
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
    if JobQueue(settings.queue_path).remove(folder.path, only_waiting=True):
        writer = RunWriter(folder.database, attempt=newest_attempt(folder.database).attempt)
        writer.event("run_stopped", "taken out of the queue before it began")
        writer.close()
        return
    if state_of(folder).ended:
        return
    if not folder.stop_request.exists():
        write_whole(folder.stop_request, str(time.time()))
    signal_worker(folder)
    dispatcher.ensure_running(settings)


def facts_of(folder: RunFolder) -> RunFacts:
    """What the disk and the process table say about a run's newest attempt."""
    process = folder.process()
    alive = is_running(process)  # before the events: a worker that ends in between has told its end by then
    trouble = ""
    try:
        with RunReader(folder.database) as reader:
            events = reader.events()
            step = reader.last_step()
            began = reader.newest_attempt()
    except StoreError as error:
        events, step, trouble, began = [], 0, str(error), AttemptStart(process.attempt if process else 1)
    newest = [event for event in events if event.attempt == began.attempt]
    if process is not None and process.attempt != began.attempt:  # that of an earlier life
        process, alive = None, False
    return RunFacts(
        events=[(event.kind, event.message) for event in newest],
        started=process is not None,
        alive=alive,
        stop_requested=folder.stop_request.exists(),
        step=step,
        exit_code=process.exit_code if process else None,
        signal=process.signal if process else None,
        checkpoint=next((event.message for event in reversed(events) if event.kind == "checkpoint_saved"), None),
        from_step=began.from_step,
        trouble=trouble,
    )


def state_of(folder: RunFolder) -> RunState:
    """The state of a run, as `run_state.derive` says."""
    return derive(facts_of(folder))


def summary(folder: RunFolder) -> dict[str, Any]:
    """A run in brief, in the shape that `train` and `show` print as JSON."""
    facts = facts_of(folder)
    state = derive(facts)
    groups, completions, metrics = 0, 0, {}
    try:
        with RunReader(folder.database) as reader:
            groups, completions = reader.counts()
            metrics = reader.last_metrics()
    except StoreError:
        pass
    return {
        "run": folder.run_id,
        "state": state.state,
        "step": facts.step,
        "steps": folder.config().algorithm.steps,
        "reason": state.reason,
        "groups": groups,
        "completions": completions,
        "metrics": metrics,
        "folder": str(folder.path),
    }


def wait_until_ended(folder: RunFolder, settings: Settings, poll: float = 0.5) -> RunState:
    """Block until the run has ended and what served it is done with it; its state then.

    A worker is dead a moment before the dispatcher has noted how it ended.
    """
    while not (state := state_of(folder)).ended:
        time.sleep(poll)
    queue, deadline = JobQueue(settings.queue_path), time.monotonic() + NOTED_WITHIN
    while time.monotonic() < deadline and any(job.run_dir == folder.path for job in queue.jobs()):
        time.sleep(0.1)
        state = state_of(folder)
    return state
