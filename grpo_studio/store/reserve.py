"""Room set aside on the disk while a worker lives, so that a full disk can still be told in the run's record.

It is a file of the run folder. Given up at the first write that finds no room; the next attempt makes it again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from grpo_studio.disk import told_when_full

NAME = ".reserve"
SIZE = 256 * 1024
"""Bytes: some pages of run.db's log for the event, a reader's share of its index, process.json, a line in the log."""


def set_aside(folder: Path) -> None:
    """Make the reserve of a run folder, unless it is there.

    Raises:
        DiskFullError: there is no room for it, so there is none for a run.
        OSError: the folder cannot be written.
    """
    path = folder / NAME
    if path.exists() and path.stat().st_size >= SIZE:
        return
    try:
        with told_when_full(folder, "a run's record", SIZE), path.open("wb") as file:
            # Not zeros, and on the disk at once: some file systems store those in no room, or find it only later.
            file.write(os.urandom(SIZE))
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise


def give_up(folder: Path) -> None:
    """Give the reserve back to the disk."""
    with suppress(OSError):
        (folder / NAME).unlink(missing_ok=True)
