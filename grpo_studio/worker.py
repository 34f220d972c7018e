"""`python -m grpo_studio.worker RUN_DIR`: one attempt at a run, alone in its session.

One process trains by itself. For several it becomes their launcher (`ranks`), and each of them, told by its
environment that it is a rank, is a worker again. Knows nothing of any page. SIGTERM asks it to finish the step, save a
checkpoint and end; whatever ends it is told in a terminal event, unless it is killed.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import NoReturn

from grpo_studio.errors import StudioError
from grpo_studio.hub_use import needs_hub
from grpo_studio.rank_process import STOPPED_EARLY, leave_word
from grpo_studio.ranks import LAUNCHER, launch
from grpo_studio.settings import Settings
from grpo_studio.stopping import Outcome, StopFlag, StoppedEarlyError
from grpo_studio.store.folder import ProcessRecord, RunFolder
from grpo_studio.store.reader import newest_attempt
from grpo_studio.store.silent_writer import SilentWriter
from grpo_studio.store.writer import RunWriter
from grpo_studio.verifiers.lifeline import die_with_parent
from grpo_studio.worker_process import record_of

TORN_DOWN = 128 + signal.SIGTERM


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
    attempt = newest_attempt(folder.database).attempt
    process = folder.process()
    if process is None or process.attempt != attempt:  # the starter notes it too, unless it died just then
        process = record_of(os.getpid(), attempt)
        folder.write_process(process)
    if launcher is not None:
        return _rank(folder, process)
    if _world_size(folder) > 1:
        _leave(launch(folder, process.attempt))  # at once: a thread may still wait for another machine
    writer = RunWriter(folder.database, attempt=process.attempt)
    try:
        return _attempt(folder, writer)
    finally:
        writer.close()


def _attempt(folder: RunFolder, writer: RunWriter) -> int:
    try:
        outcome = _run(folder, writer)
    except StoppedEarlyError:
        writer.event("run_stopped", STOPPED_EARLY)
        return 0
    except BaseException as error:
        writer.event("run_failed", _told(error), level="error")
        return 1
    _tell_end(writer, outcome)
    return 0


def _rank(folder: RunFolder, process: ProcessRecord) -> int:
    """One of several processes. The first on its machine records; why a rank ends early is the launcher's to tell."""
    records = os.environ["LOCAL_RANK"] == "0"
    writer = RunWriter(folder.database, process.attempt) if records else SilentWriter(process.attempt)
    try:
        outcome = _run(folder, writer)
    except StoppedEarlyError:
        leave_word(STOPPED_EARLY, stopped=True)
        _leave(TORN_DOWN)
    except BaseException as error:
        leave_word(_told(error))
        _leave(1)  # at once: on the way out it could wait for ranks that wait for it
    _tell_end(writer, outcome)
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

    return Session(config, settings, folder, writer, stop).run()


def _world_size(folder: RunFolder) -> int:
    try:
        return folder.config().world_size
    except StudioError:  # the attempt meets it again and tells it
        return 1


def _tell_end(writer: RunWriter, outcome: Outcome) -> None:
    if outcome.paused is not None:
        writer.event("run_paused", outcome.paused, level="error")
    elif outcome.stopped:
        writer.event("run_stopped", f"stopped on request after step {outcome.step}")
    else:
        writer.event("run_finished", f"all {outcome.step} steps done")


def _told(error: BaseException) -> str:
    """One line about what ended an attempt; the log gets all of it."""
    if isinstance(error, StudioError):
        print(f"error: {error}", file=sys.stderr)
        return str(error)
    traceback.print_exc()
    return _one_line(error)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    hint = (
        "; use a smaller memory.micro_batch or a shorter completion"
        if type(error).__name__ == "OutOfMemoryError"
        else ""
    )
    return f"{type(error).__name__}: {text[:400]}{hint}" if text else type(error).__name__


def _leave(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
