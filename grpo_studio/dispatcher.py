"""`python -m grpo_studio.dispatcher`: serves the queue of one home folder, detached from whoever started it.

Held single by a lock on the home folder. Starts one worker at a time, reaps it, enforces the grace period of a stop,
and leaves when the queue is empty. A dispatcher that comes after a crash finds the worker that still runs and waits
for it; it cannot learn how an adopted worker ended, only that it did.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grpo_studio.devices import worker_environment
from grpo_studio.job_queue import JobQueue
from grpo_studio.process_identity import is_alive, start_token
from grpo_studio.settings import PACKAGE_DIR, Settings
from grpo_studio.store.folder import ProcessRecord, RunFolder, is_run

POLL = 0.25
GRACE_SECONDS = float(os.environ.get("GRPO_STUDIO_GRACE") or 300)
"""Time a worker has after SIGTERM to finish its step and save, before its process group is killed."""
IDLE_SECONDS = 2.0
"""A dispatcher with nothing to do stays this long, so that a run that is queued just then is not missed."""


def ensure_running(settings: Settings) -> None:
    """Start a dispatcher for the home folder when there is none; a second one leaves at once."""
    environment = {
        **os.environ,
        "GRPO_STUDIO_HOME": str(settings.home),
        "GRPO_STUDIO_CACHE": str(settings.cache),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(PACKAGE_DIR.parent), os.environ.get("PYTHONPATH")])),
    }
    with (settings.home / "dispatcher.log").open("ab") as log:
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


def on_this_host(process: ProcessRecord) -> bool:
    return process.host == socket.gethostname()


def signal_worker(folder: RunFolder, number: int = signal.SIGTERM) -> None:
    """Signal a run's worker if it still is the process that was started."""
    process = folder.process()
    if process is not None and on_this_host(process) and is_alive(process.pid, process.started):
        os.kill(process.pid, number)


def serve(settings: Settings) -> None:
    """Work the queue until it has been empty for a while."""
    queue = JobQueue(settings.queue_path)
    idle_since = time.monotonic()
    while time.monotonic() - idle_since < IDLE_SECONDS:
        for job in queue.jobs():
            _run_job(queue, RunFolder(job.run_dir), taken=job.taken is not None)
            idle_since = time.monotonic()
            break
        else:
            time.sleep(POLL)


def _run_job(queue: JobQueue, folder: RunFolder, taken: bool) -> None:
    if not is_run(folder.path):
        queue.remove(folder.path)
    elif taken:
        _adopt(folder)
        queue.remove(folder.path)
    elif queue.take(folder.path):
        _start_and_wait(folder)
        queue.remove(folder.path)


def _start_and_wait(folder: RunFolder) -> None:
    with folder.log.open("ab") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "grpo_studio.worker", str(folder.path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **worker_environment(), "PYTHONUNBUFFERED": "1"},
            cwd=folder.path,
            start_new_session=True,
        )
    folder.write_process(_record(worker.pid))
    while worker.poll() is None:
        _enforce_grace(folder, worker.pid)
        time.sleep(POLL)
    _kill_group(worker.pid)
    folder.record_exit(worker.returncode)


def _adopt(folder: RunFolder) -> None:
    """Wait for a worker that an earlier dispatcher started; clear up after it."""
    process = folder.process()
    if process is None or not on_this_host(process):
        return
    was_alive = False
    while is_alive(process.pid, process.started):
        was_alive = True
        _enforce_grace(folder, process.session)
        time.sleep(POLL)
    if was_alive:
        _kill_group(process.session)


def _record(pid: int) -> ProcessRecord:
    return ProcessRecord(pid=pid, started=start_token(pid) or "gone", session=pid, host=socket.gethostname(), attempt=1)


def _enforce_grace(folder: RunFolder, session: int) -> None:
    try:
        asked = float(folder.stop_request.read_text())
    except (FileNotFoundError, ValueError):
        return
    if time.time() - asked > GRACE_SECONDS:
        _kill_group(session)


def _kill_group(session: int) -> None:
    """End whatever is left in a worker's process group: verifier children, engines, data loaders."""
    try:
        os.killpg(session, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


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
