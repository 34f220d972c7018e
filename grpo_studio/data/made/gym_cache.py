"""What Reasoning Gym made, kept on disk: whole files or none, each with a checksum of what is in it.

A row follows from its settings and number alone, so a file that is missing, damaged or in the way is made anew, and a
disk that cannot be written costs time only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any, Final

from grpo_studio.settings import Settings

_FORM: Final = 1
"""Counted up when rows are made in another way."""
_MOST_FOLDERS: Final = 100
"""Settings are tried out by the dozen: of the folders for them only the newest are kept."""


class GymCache:
    """The files for one task with one choice of settings, or for anything else that `key` stands for."""

    def __init__(self, name: str, version: str, key: Mapping[str, Any]) -> None:
        text = json.dumps([_FORM, version, name, key], sort_keys=True)
        self._root = Settings.from_env().cache / "made"
        self._folder = self._root / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"

    def read(self, part: str) -> Any:
        """What was kept under this name; None when there is nothing, or it is damaged."""
        try:
            checksum, _, text = (self._folder / f"{part}.json").read_text(encoding="ascii").partition("\n")
            return json.loads(text) if checksum == _checksum(text) else None
        except (OSError, ValueError):
            return None

    def write(self, part: str, value: Any) -> None:
        """Keep a value under this name, where the disk lets it."""
        text = json.dumps(value)
        with contextlib.suppress(OSError):
            if not self._folder.is_dir():
                self._folder.mkdir(parents=True)
                self._make_room()
            handle, aside = tempfile.mkstemp(prefix=".part-", dir=self._folder)
            try:
                with os.fdopen(handle, "w", encoding="ascii") as file:
                    file.write(f"{_checksum(text)}\n{text}")
                os.replace(aside, self._folder / f"{part}.json")
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(aside)
                raise

    def _make_room(self) -> None:
        folders = sorted(self._root.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
        for folder in folders[_MOST_FOLDERS:]:
            shutil.rmtree(folder, ignore_errors=True)


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
