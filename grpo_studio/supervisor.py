"""Launch, stop, find again: what the command line and the app do with runs. Holds no process; all state is on disk."""

from __future__ import annotations

import time
from typing import Any

from grpo_studio import dispatcher
from grpo_studio.catalog import BUILTIN_MODELS, Progress, fetch, locate
from grpo_studio.config import RunConfig
from grpo_studio.errors import StoreError
from grpo_studio.job_queue import JobQueue
from grpo_studio.process_identity import is_alive
from grpo_studio.run_state import RunFacts, RunState, derive
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, create_run, write_whole
from grpo_studio.store.reader import RunReader
from grpo_studio.store.writer import RunWriter


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
    folder = create_run(settings.runs_dir, config, name)
    JobQueue(settings.queue_path).add(folder.path)
    dispatcher.ensure_running(settings)
    return folder


def stop(folder: RunFolder, settings: Settings) -> None:
    """Ask a run to stop: take it out of the queue, or signal its worker. Returns at once; asking twice does no harm.

    The worker finishes its step and saves a checkpoint; the dispatcher kills its process group after a grace period.
    """
    if JobQueue(settings.queue_path).remove(folder.path, only_waiting=True):
        writer = RunWriter(folder.database, attempt=1)
        writer.event("run_stopped", "taken out of the queue before it began")
        writer.close()
        return
    if state_of(folder).ended:
        return
    if not folder.stop_request.exists():
        write_whole(folder.stop_request, str(time.time()))
    dispatcher.signal_worker(folder)
    dispatcher.ensure_running(settings)


def facts_of(folder: RunFolder) -> RunFacts:
    """What the disk and the process table say about a run's newest attempt."""
    process = folder.process()
    alive = process is not None and dispatcher.on_this_host(process) and is_alive(process.pid, process.started)
    try:
        with RunReader(folder.database) as reader:
            events = reader.events()
            step = reader.last_step()
    except StoreError:
        events, step = [], 0
    attempt = process.attempt if process else 1
    return RunFacts(
        events=[(event.kind, event.message) for event in events if event.attempt == attempt],
        started=process is not None,
        alive=alive,
        stop_requested=folder.stop_request.exists(),
        step=step,
        exit_code=process.exit_code if process else None,
        signal=process.signal if process else None,
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


def wait_until_ended(folder: RunFolder, limit: float | None = None, poll: float = 0.5) -> RunState:
    """Block until the run has ended, or `limit` seconds have passed; the state then."""
    deadline = None if limit is None else time.monotonic() + limit
    while not (state := state_of(folder)).ended:
        if deadline is not None and time.monotonic() > deadline:
            break
        time.sleep(poll)
    return state
