"""A whole data set read and split, the part of it that a run needs, or only its first rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from grpo_studio.config import DatasetSettings
from grpo_studio.data import streaming
from grpo_studio.data.beside import part_notes
from grpo_studio.data.files import open_file
from grpo_studio.data.hub_rows import open_hub
from grpo_studio.data.made import made_rows, open_made
from grpo_studio.data.mapping import ROWS_LOOKED_AT, ColumnMapping, map_columns, require_text
from grpo_studio.data.no_prompts import no_usable_prompt
from grpo_studio.data.rows import Row, RowStream
from grpo_studio.data.samples import Sample, to_sample
from grpo_studio.data.sources import is_made, is_on_hub
from grpo_studio.data.splitting import Numbered, set_apart
from grpo_studio.errors import DataError
from grpo_studio.progress import Progress
from grpo_studio.shown import shown

Rows = Callable[[ColumnMapping, Sequence[Numbered]], None]
"""Called once with the mapping and all rows as they were read, before any is left out."""
ROWS_BETWEEN_PROGRESS = 2000
EMPTY: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class DataSplits:
    """Rows for training and for evaluation, which share no question.

    `rows_read` counts the rows of the set before both; of a streamed one those that were read.
    """

    train: tuple[Sample, ...]
    held_out: tuple[Sample, ...]
    rows_read: int
    dropped: int
    mapping: ColumnMapping
    notes: tuple[str, ...] = ()


def load(
    settings: DatasetSettings, wanted: int | None = None, progress: Progress | None = None, as_read: Rows | None = None
) -> DataSplits:
    """Read the data set, map its columns and set the held-out rows apart.

    Rows without a usable prompt are left out and counted. With `settings.streaming` no more is read than `wanted`
    training rows take (`RunConfig.rows_wanted`; when that is not known, as many as are mixed with each other).
    `as_read` is shown the rows of a set that is read whole; not those of one that is streamed or made.

    Raises:
        DataError: the source cannot be read, lacks a mapped column, or holds too few rows.
    """
    if is_made(settings.source):
        return _made(settings, progress)
    reading = _Reading(settings, progress)
    if settings.streaming:
        return _streamed(settings, reading, streaming.SHUFFLE_BUFFER if wanted is None else wanted)
    rows = list(itertools.islice(reading, settings.limit))
    mapping = _mapping(rows, settings, reading.stream.unreadable)
    if as_read is not None:
        as_read(mapping, rows)
    samples = _Samples(settings, mapping)
    usable = [row for row in rows if samples.usable(row)]
    samples.require_any(rows)
    train, held_out = set_apart(usable, settings, samples.prompt)
    for _ in reading:  # past the limit rows are only counted
        pass
    return samples.splits(train, held_out, reading.count, reading.stream.notes)


def _made(settings: DatasetSettings, progress: Progress | None) -> DataSplits:
    train, held_out, rows_read = made_rows(settings, progress)
    samples = _Samples(settings, _mapping(train, settings))
    notes = [f"{settings.source} is made in place: dataset.streaming changes nothing"] if settings.streaming else []
    usable = [[row for row in rows if samples.usable(row)] for rows in (train, held_out)]
    return samples.splits(usable[0], usable[1], rows_read, notes)


def _streamed(settings: DatasetSettings, reading: _Reading, wanted: int) -> DataSplits:
    streaming.require_room(wanted)
    rows = itertools.islice(reading, settings.limit)
    first = streaming.window(rows, settings)
    samples = _Samples(settings, _mapping(first, settings, reading.stream.unreadable))
    usable = [row for row in first if samples.usable(row)]
    samples.require_any(first)
    part = streaming.part_of(usable, rows, settings, samples.prompt, wanted, samples.usable)
    notes = streaming.told(part, settings, wanted, reading.count, reading.ended)
    return samples.splits(part.train, part.held_out, reading.count, [*reading.stream.notes, *notes])


def _mapping(
    rows: Sequence[Numbered], settings: DatasetSettings, unreadable: Mapping[str, int] = EMPTY
) -> ColumnMapping:
    if not rows:
        raise _no_rows(settings)
    mapping = map_columns([row for _, row in rows[:ROWS_LOOKED_AT]], settings.columns, settings.source)
    require_text(mapping, unreadable, settings.columns, settings.source)
    return mapping


def open_rows(settings: DatasetSettings) -> RowStream:
    """The rows of a source as a stream.

    Raises:
        DataError: it is missing, of an unknown kind, or damaged (with the line, when that is reached).
    """
    if is_made(settings.source):
        return open_made(settings)
    return open_hub(settings) if is_on_hub(settings.source) else open_file(Path(settings.source).expanduser())


def head(settings: DatasetSettings, count: int = 200) -> list[Row]:
    """The first rows of a source; no more of it is read, or fetched, than they take.

    Raises:
        DataError: as `open_rows`, as far as the first rows show it, or there are none.
    """
    return first_rows(settings, count)[0]


def first_rows(settings: DatasetSettings, count: int) -> tuple[list[Row], RowStream]:
    """As `head`, and the stream that they came from, for its notes."""
    stream = open_rows(settings.model_copy(update={"streaming": True}))
    rows = list(itertools.islice(stream.rows, count))
    if not rows:
        raise _no_rows(settings)
    return rows, stream


def _no_rows(settings: DatasetSettings) -> DataError:
    return DataError(f"{shown(settings.source, 200)} holds no rows; give a source that does")


class _Reading:
    """The numbered rows of a source, counted as they are read; tells how far it is."""

    def __init__(self, settings: DatasetSettings, progress: Progress | None) -> None:
        self.stream = open_rows(settings)
        self.count = 0
        self.ended = False
        self._told = progress
        self._what = f"reading {settings.source}"

    def __iter__(self) -> Iterator[Numbered]:
        return self

    def __next__(self) -> Numbered:
        try:
            row = next(self.stream.rows)
        except StopIteration:
            self.ended = True
            raise
        self.count += 1
        if self._told is not None and self.count % ROWS_BETWEEN_PROGRESS == 0:
            self._told(self._what, self.stream.share() if self.stream.share is not None else 0.0)
        return self.count, row


class _Samples:
    """The rows that have a usable prompt, as samples, each made once; those without are counted."""

    def __init__(self, settings: DatasetSettings, mapping: ColumnMapping) -> None:
        assert mapping.prompt is not None, "map_columns raises otherwise"
        self.prompt = mapping.prompt
        self._settings = settings
        self._mapping = mapping
        self._made: dict[int, Sample] = {}
        self._dropped = 0

    def usable(self, row: Numbered) -> bool:
        number, cells = row
        sample = to_sample(cells, self._settings, self._mapping, number)
        if sample is None:
            self._dropped += 1
            return False
        self._made[number] = sample
        return True

    def require_any(self, rows: Sequence[Numbered]) -> None:
        """Raises ColumnError, with what is wrong with the first row, when none had a usable prompt."""
        if not self._made and rows:
            raise no_usable_prompt(rows[0], len(rows), self._settings, self._mapping)

    def splits(
        self, train: Sequence[Numbered], held_out: Sequence[Numbered], rows_read: int, notes: Sequence[str]
    ) -> DataSplits:
        kept, apart = (tuple(self._made[number] for number, _ in rows) for rows in (train, held_out))
        told = (*notes, *part_notes(self._mapping.prompt, self._mapping.beside))
        return DataSplits(kept, apart, rows_read, self._dropped, self._mapping, told)
