"""What a person does with a run that exists: resume it, branch from it, cancel, move, delete it. No process is held.

Each refusal is one line with the way out. A run's lock is held while its folder changes, so that two who ask at once,
or a worker of another home folder, never meet half of it.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress

from grpo_studio import dispatcher, resume_rules, run_lock, spending
from grpo_studio.checkpoints import Checkpoint
from grpo_studio.config import RunConfig
from grpo_studio.config_files import dump_config
from grpo_studio.errors import CheckpointError, ConfigError, StoreError, StudioError
from grpo_studio.job_queue import JobQueue
from grpo_studio.lifecycle_branch import branch, branch_changes
from grpo_studio.lifecycle_settings import changed_settings, checked_here, newest_to_resume, require_known
from grpo_studio.run_elsewhere import works_elsewhere
from grpo_studio.run_facts import facts_of
from grpo_studio.run_state import ENDED, derive
from grpo_studio.settings import Settings
from grpo_studio.store import salvage
from grpo_studio.store.folder import RunFolder, write_whole
from grpo_studio.store.reader import RunReader, newest_attempt
from grpo_studio.store.writer import RunWriter
from grpo_studio.supervisor import withdraw

__all__ = ["branch", "branch_changes", "cancel", "delete", "move", "resume"]

CLEARED_WITHIN = 20.0
"""Seconds that what served a run's last attempt has to clear up after it."""
DELETED = ".deleted-"
BRANCH = "take its newest checkpoint into a new run: branch RUN --step newest"
RESUMED_ALREADY = "{} is at work elsewhere, or was resumed just now; look at it: show RUN"


def resume(folder: RunFolder, settings: Settings, overrides: Sequence[str] = ()) -> None:
    """Begin the next attempt of a run that has ended, from its newest whole checkpoint, and queue it.

    A run that says that it waits and is in no queue, since what queued it was killed just then, is put there.

    Raises:
        StudioError: the run cannot go on, or the settings cannot change so; nothing has changed then.
    """
    require_known(overrides)
    settings.require_writable()
    queue = JobQueue(settings.queue_path)
    attempt = 0
    with suppress(StoreError):  # told below, with what to do
        attempt = newest_attempt(folder.database).attempt  # before the state: whoever comes first moves both
    if _resumable(folder, queue) == "queued":
        _queue_again(folder, queue, settings, overrides)
        return
    checkpoint, passed_over = newest_to_resume(folder)
    before, after = changed_settings(folder, overrides, attempt)
    checked_here(after, settings)
    _require_means(folder, after)
    if reason := resume_rules.refusal(checkpoint.manifest.settings, after):
        raise CheckpointError(f"{folder.run_id} cannot go on from {checkpoint.name}: {reason}")
    _wait_until_cleared(folder, queue, settings, attempt)
    with run_lock.held(folder, run_lock.PATIENCE) as mine:
        if not mine or newest_attempt(folder.database).attempt != attempt:
            raise StoreError(RESUMED_ALREADY.format(folder.run_id))
        if lost := salvage.replace(folder):
            passed_over = [*passed_over, f"its record was damaged: {lost}"]
        _begin(folder, queue, checkpoint, passed_over, before, after)
    _serve(folder, settings)


def cancel(folder: RunFolder, settings: Settings) -> None:
    """Take a run that waits out of the queue: it is stopped, and if it has a checkpoint it can be resumed.

    Raises:
        StoreError: it does not wait.
    """
    if not withdraw(folder, settings):
        state = derive(facts_of(folder)).state
        way = "there is nothing to cancel" if state in ("queued", *ENDED) else "end it: stop RUN"
        raise StoreError(f"{folder.run_id} is {state} and does not wait; {way}")


def move(folder: RunFolder, settings: Settings, place: int) -> None:
    """Give a run that waits another place in the queue, 1 being the next.

    Raises:
        StoreError: it does not wait, or there is no such place.
    """
    queue = JobQueue(settings.queue_path)
    waiting = len(queue.waiting())
    try:
        queue.move(folder.path, place)
    except ValueError as error:
        if folder.path not in queue.waiting():
            raise StoreError(f"{folder.run_id} does not wait in the queue; see who does: queue") from error
        places = "only place 1" if waiting == 1 else f"places 1 to {waiting}"
        raise StoreError(f"there is no place {place} in the queue; there are {places}") from error


def delete(folder: RunFolder, settings: Settings) -> None:
    """Delete a run with all that it recorded. It is renamed first, so that half a deletion shows no half a run.

    Raises:
        StoreError: it runs or waits, or its folder cannot be removed.
    """
    if JobQueue(settings.queue_path).has(folder.path):
        raise StoreError(f"{folder.run_id} is in the queue; first cancel it, or stop it when it has begun")
    with run_lock.held(folder) as mine:
        if not mine or _is_alive(folder):
            raise StoreError(f"{folder.run_id} is at work; stop it first: stop RUN")
        aside = folder.path.with_name(f"{DELETED}{folder.run_id}-{secrets.token_hex(2)}")
        try:
            folder.path.rename(aside)
        except OSError as error:
            raise StoreError(f"cannot delete {folder.path}: {error.strerror or error}; check its folder") from error
    for left in aside.parent.glob(f"{DELETED}*"):  # what a deletion that was killed left, too
        if left.is_symlink():
            left.unlink(missing_ok=True)
        else:
            shutil.rmtree(left, ignore_errors=True)


def _resumable(folder: RunFolder, queue: JobQueue) -> str:
    """The state of a run that can be resumed: it has ended, or it is "queued" and in no queue.

    Raises:
        StudioError: it cannot be resumed; the message says why and what to do.
    """
    facts = facts_of(folder)
    run, state = folder.run_id, derive(facts).state
    if facts.trouble:
        raise StoreError(f"{run} cannot go on, since its record is damaged: {facts.trouble}; {BRANCH}")
    if state == "queued" and queue.has(folder.path):
        raise StoreError(f"{run} waits in the queue already; to change its settings first cancel it: cancel RUN")
    if state == "finished":
        raise StoreError(
            f"{run} has finished: {facts.step} steps are done; to train on, branch from a checkpoint of it with more: "
            f"branch RUN --step newest --set algorithm.steps={2 * max(facts.step, 1)}"
        )
    if state not in ("queued", *ENDED):
        raise StoreError(f"{run} is {state}; wait until it has ended, or end it: stop RUN")
    if state == "killed" and works_elsewhere(folder):
        process = folder.process()
        raise StoreError(
            f"{run} is at work on the machine {process.host if process else '?'}; wait until it has ended, or stop it "
            "there"
        )
    return state


def _require_means(folder: RunFolder, config: RunConfig) -> None:
    with RunReader(folder.database) as reader:
        reason = spending.exhausted(config, spending.spent(reader))
    if reason:
        raise ConfigError(f"{folder.run_id} cannot go on: {reason}")


def _queue_again(folder: RunFolder, queue: JobQueue, settings: Settings, overrides: Sequence[str]) -> None:
    if overrides:
        raise ConfigError(
            f"attempt {newest_attempt(folder.database).attempt} of {folder.run_id} was begun and is in no queue; put "
            "it there without --set, or cancel it first: cancel RUN"
        )
    queue.add(folder.path)
    dispatcher.ensure_running(settings)


def _begin(
    folder: RunFolder,
    queue: JobQueue,
    checkpoint: Checkpoint,
    passed_over: Sequence[str],
    before: RunConfig,
    after: RunConfig,
) -> None:
    """Begin the next attempt. The job comes first: one without an attempt is dropped, the other way round it hangs."""
    attempt = newest_attempt(folder.database).attempt + 1
    changes = resume_rules.changes(resume_rules.flat(before), resume_rules.flat(after))
    path = folder.config_path_of(attempt)
    try:
        writer = RunWriter(folder.database, attempt)
    except StoreError as error:
        raise StoreError(f"{folder.run_id} cannot go on: {error}; {BRANCH}") from error
    try:
        path.unlink(missing_ok=True)  # of a resume that was killed before it had begun its attempt
        if changes:
            write_whole(path, dump_config(after))
        queue.add(folder.path)
        message = f"goes on after step {checkpoint.step} from {checkpoint.name}"
        told = "; ".join([message, *passed_over, *map(str, changes)])
        data = {
            "checkpoint": checkpoint.name,
            "step": checkpoint.step,
            "passed_over": list(passed_over),
            "changes": [{"field": one.field, "before": one.before, "after": one.after} for one in changes],
        }
        writer.attempt_began(checkpoint.step, checkpoint.name, told, data=data)
    except BaseException:
        queue.remove(folder.path, only_waiting=True)
        path.unlink(missing_ok=True)
        raise
    finally:
        writer.close()
    folder.stop_request.unlink(missing_ok=True)


def _serve(folder: RunFolder, settings: Settings) -> None:
    """See that the queue is served; else the run is as it was: ended, to be resumed."""
    try:
        dispatcher.ensure_running(settings)
    except StudioError:
        withdraw(folder, settings)
        raise


def _wait_until_cleared(folder: RunFolder, queue: JobQueue, settings: Settings, attempt: int) -> None:
    """A worker is dead a while before what served it is done: processes that it left are ended, memory gets free."""
    if not queue.has(folder.path):
        return
    dispatcher.ensure_running(settings)
    deadline = time.monotonic() + CLEARED_WITHIN
    while queue.has(folder.path):
        if newest_attempt(folder.database).attempt != attempt:
            raise StoreError(RESUMED_ALREADY.format(folder.run_id))
        if time.monotonic() > deadline:
            raise StoreError(f"what is left of the last attempt of {folder.run_id} still ends; try again in a moment")
        time.sleep(0.1)


def _is_alive(folder: RunFolder) -> bool:
    """Whether its worker runs, here or elsewhere; of a run whose files are damaged the lock alone tells."""
    with suppress(StudioError):
        state = derive(facts_of(folder)).state
        return state not in ("queued", *ENDED) or (state == "killed" and works_elsewhere(folder))
    return False
