"""A person's own verifier files: listed, read, written and deleted by name, in one folder and nowhere else.

A name that begins with an underscore is a draft: `discovery` does not load it. `mark` is a hash of a file's text; who
changes a file says which text they saw, so that a change made elsewhere meanwhile is not lost. No gradio here.
"""

from __future__ import annotations

import hashlib
import keyword
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grpo_studio.errors import StoreError, UsageError
from grpo_studio.store.folder import write_whole

LARGEST_BYTES = 100_000
_NAME = re.compile(r"_?[A-Za-z][A-Za-z0-9_]{0,58}\.py")


class OwnFiles:
    """The files of `folder`; `builtin` holds those whose names are taken. Safe to use from any thread."""

    def __init__(self, folder: Path, builtin: Path) -> None:
        self.folder = folder
        self.builtin = builtin
        self.lock = threading.RLock()

    def names(self) -> list[str]:
        """Names of all Python files, drafts last."""
        try:
            found = [path.name for path in self.folder.glob("*.py") if path.is_file()]
        except OSError as error:
            raise StoreError(f"cannot read {self.folder}: {error.strerror or error}") from error
        return sorted(found, key=lambda name: (name.startswith("_"), name))

    def read(self, name: str) -> tuple[str, str]:
        """Text and mark of a file.

        Raises:
            UsageError: there is no file of that name, it is too large, or no text.
        """
        path = self._existing(name)
        try:
            with path.open("rb") as file:
                data = file.read(LARGEST_BYTES + 1)
        except OSError as error:
            raise StoreError(f"cannot read {name}: {error.strerror or error}") from error
        if len(data) > LARGEST_BYTES:
            raise UsageError(f"{name} is over {LARGEST_BYTES:,} bytes; edit it with another editor")
        try:
            return data.decode("utf-8-sig"), mark_of(data)
        except UnicodeDecodeError as error:
            raise UsageError(f"{name} is no UTF-8 text (byte {error.start})") from error

    def mark(self, name: str) -> str | None:
        """The mark of a file as it is now, or None when there is none."""
        if name not in self.names():
            return None
        try:
            return mark_of((self.folder / name).read_bytes())
        except OSError as error:
            raise StoreError(f"cannot read {name}: {error.strerror or error}") from error

    def target(self, name: Any) -> str:
        """The file that a name stands for, with its `.py`.

        Raises:
            UsageError: it is no plain file name, or that of a built-in file.
        """
        text = name.strip() if isinstance(name, str) else ""
        if text and not text.endswith(".py"):
            text += ".py"
        if text not in self.names() and not _NAME.fullmatch(text):
            raise UsageError(
                f"{text[:80]!r} is no name for a file; use up to 60 letters a-z, digits and _, and begin with a letter"
            )
        stem = text.removesuffix(".py").lstrip("_")
        if keyword.iskeyword(stem):
            raise UsageError(f"{stem!r} is a word of Python; give the file another name")
        if stem.lower() in {path.stem.lower() for path in self.builtin.glob("*.py")}:
            raise UsageError(f"{stem}.py is a built-in file; give yours another name")
        return text

    def write(self, name: str, code: str) -> str:
        """Write a file whole and return its mark; the folder is made when it is missing."""
        data = encoded(code)
        path = self.folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, code)
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
        return mark_of(data)

    def delete(self, name: str) -> None:
        """Delete a file.

        Raises:
            UsageError: there is no file of that name.
        """
        try:
            self._existing(name).unlink()
        except OSError as error:
            raise StoreError(f"cannot delete {name}: {error.strerror or error}") from error

    def conflict(self, name: str, request: Mapping[str, Any]) -> str | None:
        """Why writing or deleting `name` would lose what the page has not seen; None when it would not.

        `request` says which file was opened (`opened`) with which mark (`seen`).
        """
        now = self.mark(name)
        if request.get("opened") == name:
            if now is None:
                return f"{name} was deleted since you opened it"
            return None if now == request.get("seen") else f"{name} was changed since you opened it"
        return None if now is None else f"there is already a file {name}"

    def _existing(self, name: str) -> Path:
        if name not in self.names():
            raise UsageError(f"there is no file {name[:80]!r} in {self.folder}")
        return self.folder / name


def encoded(code: Any) -> bytes:
    """A verifier's text as bytes.

    Raises:
        UsageError: it is no text, too long, or cannot be a Python file.
    """
    if not isinstance(code, str):
        raise UsageError("the request has no code; give a text under 'code'")
    try:
        data = code.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"the text holds half a character (position {error.start}); delete it") from error
    if len(data) > LARGEST_BYTES:
        raise UsageError(f"the text has {len(data):,} bytes; a verifier has at most {LARGEST_BYTES:,}")
    if b"\0" in data:
        raise UsageError("the text holds a null character; delete it")
    return data


def mark_of(data: bytes) -> str:
    """The mark of a file's bytes."""
    return hashlib.sha256(data).hexdigest()
