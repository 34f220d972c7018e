"""Data sets of the Hub as rows: the files of a split, read as local files of their kind are, so that no type lies.

Files of other kinds, and those with columns of media, are read by the library `datasets`, which says so in a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from grpo_studio.config import BUILTIN_DATASET, DatasetSettings
from grpo_studio.data.files import open_file
from grpo_studio.data.hub_files import HubFile
from grpo_studio.data.hub_sets import open_set
from grpo_studio.data.rows import Row, RowStream
from grpo_studio.data.sources import LOCAL_SUFFIXES
from grpo_studio.errors import DataError
from grpo_studio.hub_asking import failure, is_network_trouble
from grpo_studio.shown import shown


def open_hub(settings: DatasetSettings) -> RowStream:
    """The rows of a split; with `settings.streaming` they come over the network as they are asked for.

    Raises:
        DataError: it does not exist, is gated, has no such configuration or split, or the Hub cannot be reached.
    """
    source = settings.source
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", source):
        raise DataError(
            f"there is no file {shown(source, 200)}; give an existing file, a Hub id (owner/name) or {BUILTIN_DATASET}"
        )
    found = open_set(source, settings.config, settings.split)
    files = found.files(settings.split)
    media = found.media(files[0])
    if media:
        _refuse_media(settings, media)
        found.notes.append(f"{source}: {', '.join(media[:10])} hold media, not text, and are left out")
    if media or not all(file.name.lower().endswith(LOCAL_SUFFIXES) for file in files):
        found.notes.append(f"the types of the values of {source} are those that the library datasets takes them for")
        rows = found.library_rows(settings.split, settings.streaming)
        return RowStream(_told_apart(rows, source), notes=found.notes)
    walk = _Walk(files, settings.streaming, found.notes)
    return RowStream(_told_apart(walk.rows(), source), notes=found.notes, share=walk.share, unreadable=walk.unreadable)


class _Walk:
    """One file after the other; none is fetched whole when they are streamed."""

    def __init__(self, files: list[HubFile], streaming: bool, notes: list[str]) -> None:
        self._files, self._streaming, self._notes = files, streaming, notes
        self._done = 0
        self._open: RowStream | None = None
        self.unreadable: dict[str, int] = {}

    def rows(self) -> Iterator[Row]:
        for file in self._files:
            if not self._streaming:
                file.fetch()
            told = len(self._notes)
            self._open = open_file(cast(Path, file))  # it has what reading takes of one
            for row in self._open.rows:
                self._notes[told:] = self._open.notes  # they grow while rows are read
                self.unreadable.update(self._open.unreadable)
                yield row
            self._done += 1
            self._open = None

    def share(self) -> float:
        part = 0.0 if self._open is None or self._open.share is None else self._open.share()
        return min(1.0, (self._done + part) / len(self._files))


def _refuse_media(settings: DatasetSettings, media: list[str]) -> None:
    for role, column in (("prompt", settings.columns.prompt), ("answer", settings.columns.answer)):
        if column is not None and column.split(".")[0] in media:
            raise DataError(
                f"column {column!r} of {settings.source} holds media, not text; "
                f"set dataset.columns.{role} to a column of text"
            )


def _told_apart(rows: Iterator[Row], source: str) -> Iterator[Row]:
    """The rows; a failure of the network is told as one, not as a fault of the data."""
    try:
        yield from rows
    except Exception as error:  # the boundary to the Hub's libraries, which raise many kinds
        cause = error.__cause__ if isinstance(error, DataError) else error
        if is_network_trouble(cause):
            assert cause is not None
            raise failure(cause, source, "dataset") from error
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"cannot read {source}: {type(error).__name__}: {shown(str(error), 200)}; "
            "fetch its files and use one as a local file"
        ) from error
