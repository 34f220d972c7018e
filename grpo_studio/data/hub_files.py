"""A file of a data set of the Hub, as a thing that a reader of local files can read."""

from __future__ import annotations

import functools
import io
import os
import stat
from pathlib import Path, PurePosixPath
from typing import IO, Any

from grpo_studio.data.hub_quiet import quiet

BLOCK = 2 << 20
"""Bytes that are asked for at once of a file that is read in place."""


class HubFile:
    """Read in place, or from disk once `fetch` has brought it here.

    It has as much of `pathlib.Path` as reading takes, and is a file itself for readers that want one.

    Args:
        source: the id of the data set, for messages.
        url: hf://datasets/OWNER/NAME@COMMIT/PATH, or its path in a copy in the Hub's cache.
    """

    mode = "rb"
    closed = False

    def __init__(self, source: str, url: str) -> None:
        self._url = url
        self._local = None if url.startswith("hf://") else Path(url)
        tail = url.partition("@" if self._local is None else "/snapshots/")[2] or url
        self._commit, _, self._inside = tail.partition("/")
        self._source = source
        self._file: IO[bytes] | None = None
        self.name = PurePosixPath(url).name

    def __str__(self) -> str:
        return f"{self._source}/{self._inside}"

    def fetch(self) -> None:
        """Bring it to the Hub's cache on this machine, unless it is there."""
        if self._local is None:
            from huggingface_hub import hf_hub_download

            with quiet():
                path = hf_hub_download(self._source, self._inside, repo_type="dataset", revision=self._commit)
            self._local = Path(path)

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Open it anew."""
        if self._local is not None:
            return self._local.open("rb")
        opened: IO[bytes] = self._hub.open(self._url, "rb", block_size=BLOCK)
        return opened

    def stat(self) -> os.stat_result:
        """A regular file of its size."""
        size = self._hub.info(self._url)["size"] if self._local is None else self._local.stat().st_size
        return os.stat_result((stat.S_IFREG | 0o444, 0, 0, 1, 0, 0, size, 0, 0, 0))

    def exists(self) -> bool:
        return True

    def is_symlink(self) -> bool:
        return False

    def read(self, size: int = -1) -> bytes:
        return self._opened.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._opened.seek(offset, whence)

    def tell(self) -> int:
        return self._opened.tell()

    @property
    def _opened(self) -> IO[bytes]:
        if self._file is None:
            self._file = self.open()
        return self._file

    @functools.cached_property
    def _hub(self) -> Any:
        from huggingface_hub import HfFileSystem

        return HfFileSystem(skip_instance_cache=True)  # what an older one remembers may be out of date
