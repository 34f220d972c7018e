"""Space on the disk that a path lies on: what is free, whether it is enough, whether an error says that it is not."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grpo_studio.errors import DiskFullError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# SQLite says the latter when it finds no room for the index of its log.
_FULL_FOR_SQLITE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})
_SAYS_FULL = re.compile(
    r"no space left on device|disk quota exceeded|file too large"  # the system's own, passed on by safetensors
    r"|database or disk is full"  # SQLite
    # torch.save writes through C++ and loses the reason; a short write is all that it notices.
    r"|PytorchStreamWriter failed writing|iostream error|inline_container\.cc.*unexpected pos",
    re.IGNORECASE | re.DOTALL,
)


def free_bytes(path: Path) -> int:
    """Bytes that this user may still write where a path lies, or will lie once it is made."""
    found = os.statvfs(_nearest(path))
    return found.f_bavail * found.f_frsize


def disk_of(path: Path) -> str:
    """The mount point of the disk that a path lies on, or will lie on."""
    place = _nearest(path).resolve()
    while not os.path.ismount(place):
        place = place.parent
    return str(place)


def require_space(path: Path, needed: int, what: str) -> None:
    """Refuse to begin what cannot be written whole.

    Raises:
        DiskFullError: less than `needed` bytes are free where `path` lies.
    """
    if free_bytes(path) < needed:
        raise disk_full(path, what, needed)


def disk_full(path: Path, what: str, needed: int | None = None) -> DiskFullError:
    """The error for `what` that did not fit where `path` lies: names the disk, what is free and what is needed."""
    free = free_bytes(path)
    wants = "found no room" if needed is None else f"needs {sized(needed)}"
    room = "make room there" if needed is None else f"free {sized(max(needed - free, 1))} more there"
    return DiskFullError(
        f"the disk {disk_of(path)} is full: {what} {wants}, {sized(free)} is free; {room}, then go on or try again"
    )


@contextmanager
def told_when_full(path: Path, what: str, needed: int | None = None) -> Iterator[None]:
    """Whatever is raised within because the disk is full leaves as one error that says so.

    Raises:
        DiskFullError: the disk that `path` lies on took no more.
    """
    try:
        yield
    except DiskFullError:
        raise
    except Exception as error:
        if is_disk_full(error):
            raise disk_full(path, what, needed) from error
        raise


def is_disk_full(error: BaseException) -> bool:
    """Whether an error, or one that it came from, says that a disk or a quota is full."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if isinstance(link, DiskFullError) or (isinstance(link, OSError) and link.errno in _FULL):
            return True
        if isinstance(link, sqlite3.Error) and getattr(link, "sqlite_errorcode", None) in _FULL_FOR_SQLITE:
            return True
        if _SAYS_FULL.search(str(link)):
            return True
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return False


def sized(count: int) -> str:
    """Bytes for a person, two or three figures of them: `412 KB`, `1.3 GB`."""
    for unit, size in (("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1000)):
        if count >= size:
            return f"{count / size:.1f} {unit}" if count < 10 * size else f"{count / size:,.0f} {unit}"
    return f"{count} bytes"


def _nearest(path: Path) -> Path:
    """The path, or the first folder above it that is there."""
    path = path.absolute()
    while not os.path.exists(path):
        path = path.parent
    return path
