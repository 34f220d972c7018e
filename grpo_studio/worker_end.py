"""How a worker's attempt ends: the one terminal event and the exit code, whatever the disk still has room for."""

from __future__ import annotations

import sqlite3
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from grpo_studio.disk import disk_full, is_disk_full
from grpo_studio.errors import DiskFullError, StoreError, StudioError
from grpo_studio.exit_codes import NOT_RECORDED, NOT_RECORDED_DISK_FULL
from grpo_studio.memory.allocation import out_of_memory
from grpo_studio.stopping import Outcome
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reserve import give_up
from grpo_studio.store.writer import RunWriter


@dataclass(frozen=True)
class Ending:
    """The terminal event of an attempt."""

    kind: str
    message: str
    level: str = "info"

    @property
    def exit_code(self) -> int:
        return 1 if self.kind == "run_failed" else 0


def ending_of(outcome: Outcome) -> Ending:
    """How an attempt that came to its own end has ended."""
    if outcome.paused is not None:
        return Ending("run_paused", outcome.paused, "error")
    if outcome.stopped:
        return Ending("run_stopped", outcome.reason or f"stopped on request after step {outcome.step}")
    return Ending("run_finished", f"all {outcome.step} steps done")


def ending_by(error: BaseException, folder: RunFolder) -> Ending:
    """How an attempt that an error ended has ended: paused when a disk is full, else failed. The log gets all of it."""
    if is_disk_full(error):
        told = error if isinstance(error, DiskFullError) else disk_full(*_written(error, folder))
        give_up(folder.path)  # before anything is written, the log included
        _log(error)
        return Ending("run_paused", str(told), "error")
    _log(error)
    return Ending("run_failed", one_line(error), "error")


def tell(ending: Ending, writer: RunWriter, folder: RunFolder) -> int:
    """Record how an attempt ended; returns the worker's exit code.

    When the record takes no more, not even with the reserve given up, the exit code says so, and process.json holds
    it, which needs no new room.
    """
    try:
        try:
            writer.event(ending.kind, ending.message, level=ending.level)
        except (sqlite3.Error, StoreError) as error:
            if not is_disk_full(error):
                raise
            give_up(folder.path)
            writer.event(ending.kind, ending.message, level=ending.level)
    except (sqlite3.Error, StoreError) as error:
        return not_recorded(error, folder)
    return ending.exit_code


def not_recorded(error: Exception, folder: RunFolder) -> int:
    """Say by exit code and process.json what the record does not take; returns the exit code."""
    _log(error)
    code = NOT_RECORDED_DISK_FULL if is_disk_full(error) else NOT_RECORDED
    with suppress(OSError, StoreError):
        folder.record_exit(code)
    return code


def one_line(error: BaseException) -> str:
    """One line about what ended an attempt."""
    if isinstance(error, StudioError):
        return str(error)
    text = " ".join(str(error).split())
    hint = ""
    if out_of_memory(error):  # outside of a session, which says more
        hint = "; use a smaller memory.micro_batch or a shorter completion"
    elif "probability tensor contains" in text:  # what torch says when it is to sample with weights that are NaN
        hint = "; use a smaller algorithm.learning_rate, since the weights are no numbers any more"
    return f"{type(error).__name__}: {text[:400]}{hint}" if text else f"{type(error).__name__}{hint}"


def _written(error: BaseException, folder: RunFolder) -> tuple[Path, str]:
    """What was written where when the disk was found full, as far as the error tells; else something of the run."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, sqlite3.Error):
            return folder.path, "the run's record"
        if isinstance(link, OSError) and isinstance(link.filename, str):
            return Path(link.filename), Path(link.filename).name
        link = link.__cause__ or link.__context__
    return folder.path, "the run"


def _log(error: BaseException) -> None:
    """Into the log, which may lie on a full disk."""
    with suppress(OSError):
        if isinstance(error, StudioError):
            print(f"error: {error}", file=sys.stderr)
        else:
            traceback.print_exception(error)
