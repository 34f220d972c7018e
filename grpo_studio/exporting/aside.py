"""Write a folder or a file under a name of its own beside its place, and put it there when it is whole."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grpo_studio.disk import require_space, told_when_full
from grpo_studio.errors import StoreError
from grpo_studio.process_identity import start_token
from grpo_studio.store.folder import slug

PREFIX = ".exporting-"


def require_free(target: Path) -> None:
    """Refuse a place where something lies already.

    Raises:
        StoreError: it is a file, or a folder that is not empty, or cannot be looked at.
    """
    try:
        if target.is_dir() and not target.is_symlink():
            if next(target.iterdir(), None) is None:
                return
            raise StoreError(f"{target} is there already and not empty; give a folder that is not there yet")
        if target.exists() or target.is_symlink():
            raise StoreError(f"{target} is there already; give another name, or take it away first")
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"cannot look at {target}: {error.strerror or error}; give another place") from error


@contextmanager
def folder_aside(target: Path, needed: int, what: str) -> Iterator[Path]:
    """A new folder beside `target`, renamed to it at the end; on any error it is gone.

    Raises:
        StoreError: the target is not free or cannot be written.
        DiskFullError: fewer than `needed` bytes are free there, or the disk filled up meanwhile.
    """
    with _aside(target, needed, what) as aside:
        aside.mkdir()
        yield aside
        if target.is_dir():
            target.rmdir()  # an empty one, or it is refused now
        aside.rename(target)


@contextmanager
def file_aside(target: Path, needed: int, what: str) -> Iterator[Path]:
    """As `folder_aside`, for one file that the caller writes; its folder is new, and is gone at the end."""
    with _aside(target, needed, what) as aside:
        aside.mkdir()
        yield aside / target.name
        require_free(target)
        (aside / target.name).rename(target)
        shutil.rmtree(aside)


@contextmanager
def _aside(target: Path, needed: int, what: str) -> Iterator[Path]:
    require_free(target)
    made: list[Path] = []
    aside = target.parent / name_of_own(target.name)
    try:
        made = _make(target.parent)
        _clear_left_over(target.parent)
        require_space(target.parent, needed, what)
        with told_when_full(target.parent, what, needed):
            yield aside
    except OSError as error:
        _remove(aside, made)
        if isinstance(error, StoreError):
            raise
        reason = error.strerror or str(error)
        raise StoreError(f"cannot write {target}: {reason}; give a folder that you can write to") from error
    except BaseException:
        _remove(aside, made)
        raise


def name_of_own(name: str) -> str:
    """A name that tells whose it is: what this process leaves when it is killed, the next one clears away."""
    return f"{PREFIX}{name[:100]}-{_host()}-{os.getpid()}-{secrets.token_hex(4)}"


def _make(folder: Path) -> list[Path]:
    """Make a folder; returns those that were not there, the deepest first."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _remove(aside: Path, made: list[Path]) -> None:
    shutil.rmtree(aside, ignore_errors=True)
    for folder in made:
        try:
            folder.rmdir()
        except OSError:  # somebody else uses it by now
            break


def _clear_left_over(folder: Path) -> None:
    """Take away what a process of this host left when it was killed; one that lives keeps its own."""
    for entry in folder.glob(f"{PREFIX}*"):
        found = re.fullmatch(rf".*-{_host()}-([0-9]{{1,9}})-[0-9a-f]{{8}}", entry.name)
        if found and start_token(int(found[1])) is None:
            _remove(entry, [])


def _host() -> str:
    return slug(socket.gethostname())
