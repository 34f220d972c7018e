"""One real iteration of everything: a short run of the same settings by the real worker, measured and then removed.

The run lies in a folder of its own in the home folder, so it is never among the runs, and its checkpoints are written
to a disk that real ones go to. Nothing of it is left, also when it is interrupted; what a dry run that was killed left
is removed by the next one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from grpo_studio import run_lock
from grpo_studio.catalog import BUILTIN_MODELS, fetch, locate
from grpo_studio.child_environment import of_program
from grpo_studio.config import RunConfig
from grpo_studio.devices import Claim, Device, claim, current_device, shortage
from grpo_studio.dry_run_estimate import Iteration
from grpo_studio.dry_run_record import read_iteration, steps_done
from grpo_studio.errors import StoreError, TrainingError
from grpo_studio.job_queue import JobQueue
from grpo_studio.progress import Progress
from grpo_studio.run_facts import setup_of, state_of
from grpo_studio.run_state import RunState
from grpo_studio.settings import Settings
from grpo_studio.shown import shown
from grpo_studio.store.folder import RunFolder, create_run
from grpo_studio.store.log import tail
from grpo_studio.store.reader import RunReader
from grpo_studio.supervisor import with_whole_paths
from grpo_studio.temporary_folder import interrupted_by_signals, temporary_folder
from grpo_studio.worker_process import kill_session, run_to_the_end, start_worker

PREFIX = ".dry-run-"
LOOK_EVERY = 0.5
LOG_BYTES = 4096


@dataclass(frozen=True)
class DryRun:
    """What was measured, on what, and what is worth knowing about it."""

    iteration: Iteration
    device: Device
    setup: dict[str, Any]
    notes: list[str]


def dry_run(config: RunConfig, settings: Settings, anyway: bool = False, progress: Progress | None = None) -> DryRun:
    """Run a warm-up iteration and a measured one, with an evaluation and checkpoints.

    Raises:
        StudioError: GPUs that it needs are in use (unless `anyway`), or one of the iterations failed.
    """
    notes: list[str] = []
    settings.require_writable()
    location = locate(config.model.id, settings.cache)
    if location.kind == "builtin" and not location.ready:
        fetch(BUILTIN_MODELS[location.id], settings.cache, progress)
    device, claimed = current_device(), _claimed(config, settings, anyway, notes)
    with interrupted_by_signals(), temporary_folder(settings.home, PREFIX) as home, _environment(settings):
        folder = create_run(home, shortened(with_whole_paths(config)), "dry-run")
        _run(folder, claimed, settings, progress)
        with RunReader(folder.database) as reader:
            state = state_of(folder)
            if steps_done(reader) < 2 * config.algorithm.num_iterations:
                raise TrainingError(f"the dry run ended as {state.state}: {_reason(folder, state)}")
            if state.state != "finished":  # with so few steps it may have learned nothing, say
                notes.append(f"after its last step the dry run ended as {state.state}: {state.reason}")
            return DryRun(read_iteration(reader, config), device, setup_of(reader), notes)


def shortened(config: RunConfig) -> RunConfig:
    """The same run with two batches of prompts, a checkpoint after each step, and nothing that leaves the machine."""
    changes = {
        "algorithm": {"steps": 2 * config.algorithm.num_iterations},
        "checkpoint": {"every": 1, "keep": 1, "keep_best": False, "keep_every": 0},
        "evaluation": {"every": 0},
        "limits": {"hours": None, "cost": None, "tokens": None},
        "report": {"to": "none", "hub_repo": None},
    }
    sections = {name: getattr(config, name).model_copy(update=values) for name, values in changes.items()}
    return config.model_copy(update=sections)


def _claimed(config: RunConfig, settings: Settings, anyway: bool, notes: list[str]) -> Claim:
    """Devices for it. It waits for none: on a CPU, or `anyway`, it shares them with the run that has them."""
    if reason := shortage(config):
        raise TrainingError(f"a dry run cannot be started here: {reason}")
    taken = [job for job in JobQueue(settings.queue_path).jobs() if job.taken is not None]
    busy = frozenset(name for job in taken for name in job.devices or ("unknown",))
    free, shared = claim(config, busy), claim(config)
    if free is not None:
        return free
    if shared is None or (shared.trainer and not anyway):
        raise TrainingError(
            f"a run holds the devices that a dry run needs ({taken[0].run_dir.name}); wait until it has ended, or "
            "give --anyway: both are slower then, and may run out of memory"
        )
    notes.append(f"the run {taken[0].run_dir.name} was at work on the same device, so all times are too long")
    return shared


def _reason(folder: RunFolder, state: RunState) -> str:
    """Why it ended; a worker that did not say has told its log, which goes with the folder."""
    if state.state != "killed":
        return state.reason
    lines = [line.strip() for line in tail(folder.log, LOG_BYTES).splitlines() if line.strip()]
    return f"{state.reason}; its log ends with: {shown(lines[-1], 300)}" if lines else state.reason


@contextmanager
def _environment(settings: Settings) -> Iterator[None]:
    """What a worker needs to find this program and the same folders, wherever it is started from."""
    wanted = of_program(settings)
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run(folder: RunFolder, claimed: Claim, settings: Settings, progress: Progress | None) -> None:
    """The worker, to its end; whatever ends this ends the worker too."""
    done = threading.Event()
    watcher = threading.Thread(target=_tell, args=(folder, progress, done), daemon=True)
    try:
        with run_lock.held(folder):
            worker, process = start_worker(folder, claimed)
        if progress is not None:
            watcher.start()
        run_to_the_end(folder, settings, worker, process)
    except BaseException:
        started = folder.process()
        if started is not None:
            kill_session(started.session, started.started)
        raise
    finally:
        done.set()


def _tell(folder: RunFolder, progress: Progress, done: threading.Event) -> None:
    steps = folder.config().algorithm.steps
    while not done.wait(LOOK_EVERY):
        with suppress(StoreError), RunReader(folder.database) as reader:
            events, step = reader.events(), reader.last_step()
            training = any(event.kind == "training_started" for event in events)
            what = f"step {min(step + 1, steps)} of {steps}" if training else events[-1].message
            progress(f"dry run: {what}", 0.4 + 0.5 * step / steps if training else 0.05 * min(len(events), 6))
