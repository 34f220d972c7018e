"""`python -m grpo_studio.dispatcher`: serves the queue of one home folder, detached from whoever started it.

Held single by a lock on the home folder. Starts the runs in order, each on devices that no other one holds, sees each
to its end (`worker_process`) in a thread of its own, and leaves when the queue is empty. A dispatcher that comes after
a crash finds the workers that still run, and the devices that they hold, and waits for them.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from grpo_studio import run_lock
from grpo_studio.child_environment import of_program
from grpo_studio.config import RunConfig
from grpo_studio.devices import Claim, claim, shortage
from grpo_studio.errors import DiskFullError, StoreError, StudioError
from grpo_studio.job_queue import Job, JobQueue
from grpo_studio.run_facts import state_of
from grpo_studio.settings import PACKAGE_DIR, Settings
from grpo_studio.store.folder import RunFolder, is_run
from grpo_studio.worker_process import POLL, note_failure, run_to_the_end, start_worker, wait_for_adopted

IDLE_SECONDS = 2.0
"""A dispatcher with nothing to do stays this long, so that a run that is queued just then is not missed."""


def ensure_running(settings: Settings) -> None:
    """Start a dispatcher for the home folder when there is none; a second one leaves soon.

    Raises:
        StoreError: it cannot be started.
    """
    log_path = settings.home / "dispatcher.log"
    try:
        with log_path.open("ab") as log:
            # Started through a short-lived middle process, so that it is nobody's child: no zombie, no wait.
            subprocess.run(
                [sys.executable, "-m", "grpo_studio.dispatcher", "--detach"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | of_program(settings),
                cwd=PACKAGE_DIR.parent,
                start_new_session=True,
                check=True,
            )
    except (OSError, subprocess.CalledProcessError) as error:
        raise StoreError(f"cannot start what serves the queue: {error}; see {log_path}") from error


def serve(settings: Settings) -> None:
    """Work the queue until it has been empty for a while.

    Raises:
        StoreError: the queue cannot be read.
    """
    serving = _Serving(settings)
    idle_since = time.monotonic()
    try:
        while time.monotonic() - idle_since < IDLE_SECONDS:
            if serving.look():
                idle_since = time.monotonic()
            time.sleep(POLL)
    finally:
        serving.wait()


class _Serving:
    """The runs that this dispatcher sees to, each in a thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._queue = JobQueue(settings.queue_path)
        self._threads: dict[Path, threading.Thread] = {}
        self._in_vain: tuple[Path, frozenset[str]] | None = None

    def look(self) -> bool:
        """Take up what may begin; whether there is anything to do at all."""
        ended = [path for path, thread in self._threads.items() if not thread.is_alive()]
        for path in ended:
            del self._threads[path]
        jobs = self._queue.jobs()
        taken = [job for job in jobs if job.taken is not None]
        for job in taken:
            if job.run_dir not in self._threads:
                self._see_to(job.run_dir, None)
        waiting = next((job for job in jobs if job.taken is None), None)
        if waiting is not None:
            self._try_next(waiting.run_dir, taken)
        return bool(jobs or self._threads)

    def wait(self) -> None:
        """Block until no run is seen to any more."""
        for thread in self._threads.values():
            thread.join()

    def _try_next(self, run_dir: Path, taken: list[Job]) -> None:
        """Start the first run that waits, if what it needs is free. No other one overtakes it."""
        if any(job.devices is None for job in taken):  # of an older version: it may be on any
            return
        busy = frozenset(name for job in taken for name in job.devices or ())
        if self._in_vain == (run_dir, busy):
            return
        config = _config_of(RunFolder(run_dir))
        claimed = claim(config, busy)
        if claimed is None and (reason := None if busy else shortage(config)):
            _fail(RunFolder(run_dir), f"this run cannot be started here: {reason}")
            self._queue.remove(run_dir, only_waiting=True)
        elif claimed is None:
            self._in_vain = (run_dir, busy)
        elif self._queue.take(run_dir, claimed.devices):
            self._in_vain = None
            self._see_to(run_dir, claimed)

    def _see_to(self, run_dir: Path, claimed: Claim | None) -> None:
        thread = threading.Thread(target=self._one_run, args=(RunFolder(run_dir), claimed), name=run_dir.name)
        self._threads[run_dir] = thread
        thread.start()

    def _one_run(self, folder: RunFolder, claimed: Claim | None) -> None:
        """See one run to its end; trouble with it is the run's failure, never the dispatcher's.

        Args:
            claimed: None when an earlier dispatcher took it. One that ended before it had started the worker has only
                taken it: then it waits again, at its place.
        """
        waits_again = False
        try:
            if is_run(folder.path) and claimed is not None:
                _start_and_wait(folder, claimed, self._settings)
            elif is_run(folder.path):
                waits_again = not wait_for_adopted(folder, self._settings)
        except (OSError, StudioError) as error:
            kind = "run_paused" if isinstance(error, DiskFullError) else "run_failed"
            _fail(folder, f"the worker could not be started: {error}", kind)
        finally:
            with _told_only():
                if waits_again:
                    self._queue.give_back(folder.path)
                else:
                    self._queue.remove(folder.path)


def _start_and_wait(folder: RunFolder, claimed: Claim, settings: Settings) -> None:
    """Start the newest attempt of a run, unless it has begun or ended: by another home folder's queue, say."""
    with run_lock.held(folder, run_lock.PATIENCE) as mine:
        if not mine or state_of(folder).state != "queued":
            _say(f"{folder.run_id}: does not wait any more, left alone")
            return
        worker, process = start_worker(folder, claimed)
    run_to_the_end(folder, settings, worker, process)


def _fail(folder: RunFolder, message: str, kind: str = "run_failed") -> None:
    """Record that a run cannot be started; one that has begun tells its own end."""
    _say(f"{folder.run_id}: {message}")
    with _told_only():
        if is_run(folder.path) and state_of(folder).state == "queued":
            note_failure(folder, message, kind)


def _say(line: str) -> None:
    """Write to the dispatcher's log, which may lie on a disk that is full."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


@contextmanager
def _told_only() -> Iterator[None]:
    """Trouble that nothing can be done about here goes to the log."""
    try:
        yield
    except (OSError, StudioError, sqlite3.Error) as error:
        _say(str(error))


def _config_of(folder: RunFolder) -> RunConfig:
    try:
        return folder.config()
    except StudioError:  # the worker meets it again and tells it
        return RunConfig()


@contextmanager
def _only_one(home: Path) -> Iterator[bool]:
    """Hold the home folder's lock; yields False when another dispatcher keeps it.

    Tries for longer than an idle dispatcher stays: one that is just leaving would not see the run that was queued.
    """
    deadline = time.monotonic() + 2 * IDLE_SECONDS
    with (home / "dispatcher.lock").open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    yield False
                    return
                time.sleep(POLL)
            else:
                yield True
                return


def main(arguments: list[str]) -> int:
    if "--detach" in arguments and os.fork():
        return 0
    settings = Settings.from_env()
    with _only_one(settings.home) as alone:
        if not alone:
            return 0
        try:
            serve(settings)
        except StoreError as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
            return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
