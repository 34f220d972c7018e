"""`python -m grpo_studio.worker RUN_DIR`: one attempt at a run, alone in its session.

One process trains by itself. For several it becomes their launcher (`ranks`), and each of them, told by its
environment that it is a rank, is a worker again. Knows nothing of any page. SIGTERM asks it to finish the step, save a
checkpoint and end; whatever ends it is told in a terminal event, unless it is killed.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

from grpo_studio import run_lock
from grpo_studio.errors import StudioError
from grpo_studio.exit_codes import ANOTHER_WORKER
from grpo_studio.hub_use import needs_hub
from grpo_studio.rank_process import STOPPED_EARLY, leave_word
from grpo_studio.ranks import LAUNCHER, launch
from grpo_studio.settings import Settings
from grpo_studio.stopping import Outcome, StopFlag, StoppedEarlyError
from grpo_studio.store.folder import ProcessRecord, RunFolder
from grpo_studio.store.reader import newest_attempt
from grpo_studio.store.reserve import set_aside
from grpo_studio.store.silent_writer import SilentWriter
from grpo_studio.store.writer import RunWriter
from grpo_studio.verifiers.lifeline import die_with_parent
from grpo_studio.worker_end import Ending, ending_by, ending_of, not_recorded, tell
from grpo_studio.worker_process import record_of

TORN_DOWN = 128 + signal.SIGTERM
LOCKED_WITHIN = 10.0
"""Seconds for which a worker waits for the run's lock: who starts it holds it for a moment."""


def main(arguments: list[str] | None = None) -> int:
    """Run the newest attempt that was begun. Returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1:
        print("usage: python -m grpo_studio.worker RUN_DIR", file=sys.stderr)
        return 2
    folder = RunFolder(Path(arguments[0]).resolve())
    launcher = os.environ.get(LAUNCHER)
    if launcher is not None:
        die_with_parent(int(launcher))
    try:
        lock = None if launcher else run_lock.acquire(folder, LOCKED_WITHIN)  # until this process ends
        process = _noted(folder) if launcher or lock else None
        if process is None:
            print("another worker has this run, or is about to: this one leaves it alone", file=sys.stderr)
            return ANOTHER_WORKER
        if launcher is not None:
            return _rank(folder, process)
        if _world_size(folder) > 1:
            _leave(launch(folder, process.attempt))  # at once: a thread may still wait for another machine
        writer = RunWriter(folder.database, attempt=process.attempt)
    except (OSError, sqlite3.Error) as error:
        return not_recorded(error, folder)
    try:
        return tell(_attempt(folder, writer), writer, folder)
    finally:
        writer.close()


def _noted(folder: RunFolder) -> ProcessRecord | None:
    """What process.json says of this worker; it is noted by its starter too, unless that died just then.

    None when it names another worker of the same attempt.
    """
    attempt = newest_attempt(folder.database).attempt
    process, own = folder.process(), record_of(os.getpid(), attempt)
    if process is None or process.attempt != attempt:
        process = own
        folder.write_process(process)
    elif LAUNCHER not in os.environ and (process.pid, process.started) != (own.pid, own.started):
        return None
    return process


def _attempt(folder: RunFolder, writer: RunWriter) -> Ending:
    try:
        set_aside(folder.path)
        return ending_of(_run(folder, writer))
    except StoppedEarlyError:
        return Ending("run_stopped", STOPPED_EARLY)
    except BaseException as error:
        return ending_by(error, folder)


def _rank(folder: RunFolder, process: ProcessRecord) -> int:
    """One of several processes. The first on its machine records; why a rank ends early is the launcher's to tell."""
    records = os.environ["LOCAL_RANK"] == "0"
    writer = RunWriter(folder.database, process.attempt) if records else SilentWriter(process.attempt)
    try:
        if records:
            set_aside(folder.path)
        ending = ending_of(_run(folder, writer))
    except StoppedEarlyError:
        leave_word(STOPPED_EARLY, stopped=True)
        _leave(TORN_DOWN)
    except BaseException as error:
        ending = ending_by(error, folder)
        if records and ending.kind == "run_paused":  # here, since a last word says of a failure alone
            tell(ending, writer, folder)
        with suppress(OSError):
            leave_word(ending.message)
        _leave(1)  # at once: on the way out it could wait for ranks that wait for it
    tell(ending, writer, folder)
    writer.close()
    from grpo_studio.training.torchrun import leave_group

    leave_group()
    return 0


def _run(folder: RunFolder, writer: RunWriter) -> Outcome:
    stop = StopFlag()

    def on_sigterm(number: int, frame: FrameType | None) -> None:
        if LAUNCHER in os.environ and not folder.stop_request.exists():
            os._exit(TORN_DOWN)  # nobody asked for a stop: another rank has failed
        stop.request()

    signal.signal(signal.SIGTERM, on_sigterm)
    if folder.stop_request.exists():
        stop.request()
    writer.event("preparing", "loading the libraries")
    config, settings = folder.config(), Settings.from_env()
    if not needs_hub(config, settings):
        os.environ["HF_HUB_OFFLINE"] = "1"  # nothing of this run is there: no library shall wait for it
    from grpo_studio.training.session import Session

    outcome = Session(config, settings, folder, writer, stop).run()
    return replace(outcome, reason=stop.reason)


def _world_size(folder: RunFolder) -> int:
    try:
        return folder.config().world_size
    except StudioError:  # the attempt meets it again and tells it
        return 1


def _leave(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
