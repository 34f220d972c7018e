"""A run's worker seen from outside: start it in a session of its own, signal it, wait for it, clear up after it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

from grpo_studio.devices import Claim, worker_environment
from grpo_studio.errors import StudioError
from grpo_studio.exit_codes import ANOTHER_WORKER
from grpo_studio.process_identity import began_before, is_alive, is_of_this_boot, start_token
from grpo_studio.settings import Settings
from grpo_studio.store.folder import ProcessRecord, RunFolder
from grpo_studio.store.reader import newest_attempt
from grpo_studio.store.reserve import set_aside
from grpo_studio.store.writer import RunWriter
from grpo_studio.worker_watch import Watch

POLL = 0.25
"""Seconds between two looks at a worker."""
ASK_FOR = 1.0
"""Seconds from SIGTERM to SIGKILL for what a dead worker left."""
GONE = "gone"
"""The start token of a worker that was dead before it could be read."""
RECORD_WITHIN = 5.0
"""A worker whose starter died notes itself in process.json within this many seconds."""


def start_worker(folder: RunFolder, claimed: Claim) -> tuple[subprocess.Popen[bytes], ProcessRecord]:
    """Start a run's worker and note it in process.json; the caller holds the run's lock.

    Raises:
        OSError: it cannot be started or noted, for want of room on the disk above all; then no process is left.
    """
    set_aside(folder.path)
    with folder.log.open("ab") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "grpo_studio.worker", str(folder.path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **_environment(folder, claimed), "PYTHONUNBUFFERED": "1"},
            cwd=folder.path,
            start_new_session=True,
        )
    try:
        process = record_of(worker.pid, newest_attempt(folder.database).attempt)
        folder.write_process(process)
    except OSError:
        kill_session(worker.pid)
        worker.wait()
        raise
    return worker, process


def run_to_the_end(
    folder: RunFolder, settings: Settings, worker: subprocess.Popen[bytes], process: ProcessRecord
) -> None:
    """Wait until a worker has ended; how it ended is noted in process.json."""
    if folder.stop_request.exists():  # asked for before there was a process to signal
        signal_worker(folder)
    watch = Watch(folder, settings, process.attempt)
    while worker.poll() is None:
        if watch.time_is_up():
            kill_session(process.session, process.started)
            worker.wait()
        else:
            time.sleep(POLL)
    if worker.returncode != ANOTHER_WORKER:  # then process.json tells of that one
        folder.record_exit(worker.returncode)
    kill_session(process.session, process.started)
    watch.bound_log()


def _environment(folder: RunFolder, claimed: Claim) -> dict[str, str]:
    try:
        return worker_environment(folder.config(), claimed)
    except StudioError:  # the worker meets it again and tells it
        return worker_environment(None, claimed)


def wait_for_adopted(folder: RunFolder, settings: Settings) -> bool:
    """Wait for a worker that an earlier dispatcher started, and clear up after it; False when it started none.

    How an adopted worker ended cannot be learned, only that it did.
    """
    deadline, attempt = time.monotonic() + RECORD_WITHIN, newest_attempt(folder.database).attempt
    while not (noted := (process := folder.process()) is not None and process.attempt == attempt):
        if time.monotonic() > deadline:
            break
        time.sleep(POLL)
    if process is None or not noted:
        return False
    if not on_this_host(process):
        return True
    watch = Watch(folder, settings, attempt)
    while is_alive(process.pid, process.started):
        if watch.time_is_up():
            kill_session(process.session, process.started)
        time.sleep(POLL)
    kill_session(process.session, process.started, folder.path)
    return True


def note_failure(folder: RunFolder, message: str, kind: str = "run_failed") -> None:
    """Record that an attempt failed, or is paused, before it had a worker to say so itself."""
    writer = RunWriter(folder.database, newest_attempt(folder.database).attempt)
    writer.event(kind, message, level="error")
    writer.close()


def record_of(pid: int, attempt: int) -> ProcessRecord:
    """What process.json holds for the worker of an attempt."""
    return ProcessRecord(pid, start_token(pid) or GONE, session=pid, host=socket.gethostname(), attempt=attempt)


def on_this_host(process: ProcessRecord) -> bool:
    return process.host == socket.gethostname()


def is_running(process: ProcessRecord | None) -> bool:
    """Whether that very process still runs here."""
    return process is not None and on_this_host(process) and is_alive(process.pid, process.started)


def signal_worker(folder: RunFolder, number: int = signal.SIGTERM) -> None:
    """Signal a run's worker if it still is the process that was started."""
    process = folder.process()
    if process is not None and is_running(process):
        os.kill(process.pid, number)


def kill_session(session: int, started: str | None = None, run: Path | None = None) -> None:
    """End all processes of a worker's session, until none is left: judges, what verifiers started, data loaders.

    First they are asked, so that a server can clear its files away. The worker itself is not waited for: its exit
    status belongs to whoever started it.

    Args:
        started: start token of the worker that led the session. Ids are reused: a session that another process leads,
            of another boot, or processes older than the worker, are not touched.
        run: the run's folder, given by who did not see the worker end: then only processes that work in that folder
            or hold a file of it open are touched.
    """
    told: list[psutil.Process] = []
    asked, deadline = time.monotonic(), time.monotonic() + 10
    while (members := _members(session, started, run)) and time.monotonic() < deadline:
        for process in members:
            try:
                if time.monotonic() - asked > ASK_FOR:
                    process.kill()
                elif process not in told:
                    process.terminate()
            except psutil.NoSuchProcess:
                continue
        told = members
        time.sleep(0.05)


def _members(session: int, started: str | None, run: Path | None) -> list[psutil.Process]:
    if started is not None and not _may_live(session, started):
        return []
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) != session or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if started is not None and began_before(process.pid, started):
                continue
            if run is None or _works_in(process, run):
                found.append(process)
        except (ProcessLookupError, PermissionError, psutil.Error):
            continue
    return found


def _may_live(session: int, started: str) -> bool:
    """Whether the session can still be the one that a worker led: its id is not given away while a member lives."""
    return started != GONE and is_of_this_boot(started) and start_token(session) in (started, None)


def _works_in(process: psutil.Process, run: Path) -> bool:
    paths = [process.cwd(), *(file.path for file in process.open_files())]
    return any(Path(path).is_relative_to(run) for path in paths)
