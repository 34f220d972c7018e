"""`python -m grpo_studio.worker RUN_DIR`: one attempt at a run, alone in its process and session.

Knows nothing of any page. SIGTERM asks it to finish the step, save a checkpoint and end; whatever ends it is told in a
terminal event, unless it is killed.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType

from grpo_studio.catalog import locate
from grpo_studio.data import is_on_hub
from grpo_studio.errors import StudioError
from grpo_studio.settings import Settings
from grpo_studio.stopping import Outcome, StopFlag, StoppedEarlyError
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.writer import RunWriter
from grpo_studio.worker_process import record_of


def main(arguments: list[str] | None = None) -> int:
    """Run the attempt that process.json names (the first when there is none). Returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1:
        print("usage: python -m grpo_studio.worker RUN_DIR", file=sys.stderr)
        return 2
    folder = RunFolder(Path(arguments[0]).resolve())
    process = folder.process()
    if process is None:  # the starter notes it too, unless it died just then
        process = record_of(os.getpid())
        folder.write_process(process)
    writer = RunWriter(folder.database, attempt=process.attempt)
    try:
        return _attempt(folder, writer)
    finally:
        writer.close()


def _attempt(folder: RunFolder, writer: RunWriter) -> int:
    try:
        outcome = _run(folder, writer)
    except StoppedEarlyError:
        writer.event("run_stopped", "stopped on request before training began")
        return 0
    except StudioError as error:
        writer.event("run_failed", str(error), level="error")
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BaseException as error:
        traceback.print_exc()
        writer.event("run_failed", _one_line(error), level="error")
        return 1
    if outcome.stopped:
        writer.event("run_stopped", f"stopped on request after step {outcome.step}")
    else:
        writer.event("run_finished", f"all {outcome.step} steps done")
    return 0


def _run(folder: RunFolder, writer: RunWriter) -> Outcome:
    stop = StopFlag()

    def on_sigterm(number: int, frame: FrameType | None) -> None:
        stop.request()

    signal.signal(signal.SIGTERM, on_sigterm)
    if folder.stop_request.exists():
        stop.request()
    writer.event("preparing", "loading the libraries")
    config, settings = folder.config(), Settings.from_env()
    if locate(config.model.id, settings.cache).kind != "hub" and not is_on_hub(config.dataset.source):
        os.environ["HF_HUB_OFFLINE"] = "1"  # nothing of this run is there: no library shall wait for it
    from grpo_studio.training.session import Session

    return Session(config, settings, folder, writer, stop).run()


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    hint = (
        "; use a smaller memory.micro_batch or a shorter completion"
        if type(error).__name__ == "OutOfMemoryError"
        else ""
    )
    return f"{type(error).__name__}: {text[:400]}{hint}" if text else type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
