"""The lock of a run: its worker holds it while it lives, whoever begins, ends or deletes an attempt for a moment.

It is the kernel's, so it is gone with its holder, and it tells of workers that another home folder or another machine
with the same disk has started.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from grpo_studio.errors import StoreError
from grpo_studio.store.folder import RunFolder

POLL = 0.05
PATIENCE = 5.0
"""Seconds for which the lock is worth waiting for; who holds it for longer is a worker."""


def acquire(folder: RunFolder, patience: float = 0.0) -> IO[Any] | None:
    """Take the lock, which is held until the file is closed; None when it was not free within `patience` seconds.

    Raises:
        StoreError: the folder is gone or cannot be written to.
    """
    try:
        lock = folder.lock.open("a")
    except OSError as error:
        raise StoreError(f"cannot lock {folder.path}: {error.strerror or error}") from error
    deadline = time.monotonic() + patience
    while not _taken(lock, fcntl.LOCK_EX):
        if time.monotonic() >= deadline:
            lock.close()
            return None
        time.sleep(POLL)
    return lock


@contextmanager
def held(folder: RunFolder, patience: float = 0.0) -> Iterator[bool]:
    """Hold the lock within; yields False when somebody else keeps it."""
    lock = acquire(folder, patience)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.close()


def is_held(folder: RunFolder) -> bool:
    """Whether somebody holds it now."""
    try:
        with folder.lock.open("r") as lock:
            return not _taken(lock, fcntl.LOCK_SH)
    except OSError:
        return False


def _taken(lock: IO[Any], kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system that knows no locks: there, only process.json tells of a worker
        return True
    return True
