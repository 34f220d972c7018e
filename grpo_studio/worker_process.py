"""A run's worker seen from outside: start it in a session of its own, signal it, wait for it, clear up after it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import psutil

from grpo_studio.devices import worker_environment
from grpo_studio.errors import StudioError
from grpo_studio.process_identity import is_alive, start_token
from grpo_studio.settings import Settings
from grpo_studio.store.folder import ProcessRecord, RunFolder
from grpo_studio.store.reader import newest_attempt
from grpo_studio.store.writer import RunWriter

POLL = 0.25
"""Seconds between two looks at a worker."""
ASK_FOR = 1.0
"""Seconds from SIGTERM to SIGKILL for what a dead worker left."""
RECORD_WITHIN = 5.0
"""A worker whose starter died notes itself in process.json within this many seconds."""


def run_to_the_end(folder: RunFolder, settings: Settings) -> None:
    """Start a run's worker and wait until it has ended; how it ended is noted in process.json."""
    with folder.log.open("ab") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "grpo_studio.worker", str(folder.path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **_environment(folder), "PYTHONUNBUFFERED": "1"},
            cwd=folder.path,
            start_new_session=True,
        )
    folder.write_process(record_of(worker.pid, newest_attempt(folder.database).attempt))
    if folder.stop_request.exists():  # asked for before there was a process to signal
        signal_worker(folder)
    while worker.poll() is None:
        if grace_is_over(folder, settings):
            kill_session(worker.pid)
            worker.wait()
        else:
            time.sleep(POLL)
    folder.record_exit(worker.returncode)
    kill_session(worker.pid)


def _environment(folder: RunFolder) -> dict[str, str]:
    try:
        return worker_environment(folder.config())
    except StudioError:  # the worker meets it again and tells it
        return worker_environment()


def wait_for_adopted(folder: RunFolder, settings: Settings) -> None:
    """Wait for a worker that an earlier dispatcher started, and clear up after it.

    How an adopted worker ended cannot be learned, only that it did. When none was ever started, the run has failed.
    """
    deadline, attempt = time.monotonic() + RECORD_WITHIN, newest_attempt(folder.database).attempt
    while not (noted := (process := folder.process()) is not None and process.attempt == attempt):
        if time.monotonic() > deadline:
            break
        time.sleep(POLL)
    if process is None or not noted:
        note_failure(folder, "the worker was never started: what served the queue ended just then; start the run again")
        return
    if not on_this_host(process):
        return
    was_alive = False
    while is_alive(process.pid, process.started):
        was_alive = True
        if grace_is_over(folder, settings):
            kill_session(process.session)
        time.sleep(POLL)
    if was_alive:
        kill_session(process.session)


def note_failure(folder: RunFolder, message: str) -> None:
    """Record that an attempt failed before it had a worker to say so itself."""
    writer = RunWriter(folder.database, newest_attempt(folder.database).attempt)
    writer.event("run_failed", message, level="error")
    writer.close()


def record_of(pid: int, attempt: int) -> ProcessRecord:
    """What process.json holds for the worker of an attempt."""
    return ProcessRecord(pid, start_token(pid) or "gone", session=pid, host=socket.gethostname(), attempt=attempt)


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


def grace_is_over(folder: RunFolder, settings: Settings) -> bool:
    """Whether a stop was asked for so long ago that the worker is killed."""
    try:
        asked = float(folder.stop_request.read_text())
    except (FileNotFoundError, ValueError):
        return False
    return time.time() - asked > settings.grace_seconds


def kill_session(session: int) -> None:
    """End all processes of a worker's session, until none is left: judges, what verifiers started, data loaders.

    First they are asked, so that a server can clear its files away.

    The worker itself is not waited for: its exit status belongs to whoever started it.
    """
    told: list[psutil.Process] = []
    asked, deadline = time.monotonic(), time.monotonic() + 10
    while (members := _members(session)) and time.monotonic() < deadline:
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


def _members(session: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, PermissionError, psutil.Error):
            continue
    return found
