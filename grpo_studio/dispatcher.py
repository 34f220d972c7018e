"""`python -m grpo_studio.dispatcher`: serves the queue of one home folder, detached from whoever started it.

Held single by a lock on the home folder. Sees one run after the other to its end (`worker_process`), and leaves when
the queue is empty. A dispatcher that comes after a crash finds the worker that still runs and waits for it.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grpo_studio.errors import StoreError, StudioError
from grpo_studio.job_queue import JobQueue
from grpo_studio.settings import PACKAGE_DIR, Settings
from grpo_studio.store.folder import RunFolder, is_run
from grpo_studio.worker_process import POLL, note_failure, run_to_the_end, wait_for_adopted

IDLE_SECONDS = 2.0
"""A dispatcher with nothing to do stays this long, so that a run that is queued just then is not missed."""


def ensure_running(settings: Settings) -> None:
    """Start a dispatcher for the home folder when there is none; a second one leaves soon.

    Raises:
        StoreError: it cannot be started.
    """
    environment = {
        **os.environ,
        "GRPO_STUDIO_HOME": str(settings.home),
        "GRPO_STUDIO_CACHE": str(settings.cache),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(PACKAGE_DIR.parent), os.environ.get("PYTHONPATH")])),
    }
    log_path = settings.home / "dispatcher.log"
    try:
        with log_path.open("ab") as log:
            # Started through a short-lived middle process, so that it is nobody's child: no zombie, no wait.
            subprocess.run(
                [sys.executable, "-m", "grpo_studio.dispatcher", "--detach"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=PACKAGE_DIR.parent,
                start_new_session=True,
                check=True,
            )
    except (OSError, subprocess.CalledProcessError) as error:
        raise StoreError(f"cannot start what serves the queue: {error}; see {log_path}") from error


def serve(settings: Settings) -> None:
    """Work the queue until it has been empty for a while."""
    queue = JobQueue(settings.queue_path)
    idle_since = time.monotonic()
    while time.monotonic() - idle_since < IDLE_SECONDS:
        for job in queue.jobs():
            _run_job(queue, RunFolder(job.run_dir), settings, taken=job.taken is not None)
            idle_since = time.monotonic()
            break
        else:
            time.sleep(POLL)


def _run_job(queue: JobQueue, folder: RunFolder, settings: Settings, taken: bool) -> None:
    """See one run to its end; trouble with it is the run's failure, never the dispatcher's."""
    try:
        if not is_run(folder.path):
            return
        if taken:
            wait_for_adopted(folder, settings)
        elif queue.take(folder.path):
            run_to_the_end(folder, settings)
    except (OSError, StudioError) as error:
        print(f"{folder.run_id}: {error}", file=sys.stderr, flush=True)
        if folder.process() is None:
            note_failure(folder, f"the worker could not be started: {error}")
    finally:
        queue.remove(folder.path)


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
        if alone:
            serve(settings)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
