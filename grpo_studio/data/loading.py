"""A whole data set read and split, or only its first rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grpo_studio.config import DatasetSettings
from grpo_studio.data.files import open_file
from grpo_studio.data.hub_rows import open_hub
from grpo_studio.data.made import made_rows, open_made
from grpo_studio.data.mapping import ROWS_LOOKED_AT, ColumnMapping, map_columns
from grpo_studio.data.rows import Row, RowStream
from grpo_studio.data.samples import Sample, to_sample
from grpo_studio.data.sources import is_made, is_on_hub
from grpo_studio.data.splitting import Numbered, set_apart
from grpo_studio.errors import DataError

Progress = Callable[[str, float], None]
"""Called with what is being done and the share that is done, 0 to 1; it ends the work by raising."""


@dataclass(frozen=True)
class DataSplits:
    """Rows for training and for evaluation, which share no question; `rows_read` counts rows before both."""

    train: tuple[Sample, ...]
    held_out: tuple[Sample, ...]
    rows_read: int
    dropped: int
    mapping: ColumnMapping
    notes: tuple[str, ...] = ()


def load(settings: DatasetSettings) -> DataSplits:
    """Read the data set, map its columns and set the held-out rows apart.

    Rows without a usable prompt are dropped and counted.

    Raises:
        DataError: the source cannot be read, lacks a mapped column, or holds too few rows.
    """
    if is_made(settings.source):
        train, held_out, rows_read = made_rows(settings)
        mapping = map_columns([row for _, row in train[:ROWS_LOOKED_AT]], settings.columns, settings.source)
        notes: Sequence[str] = ()
    else:
        stream = open_rows(settings)
        rows = list(enumerate(stream.rows, start=1))
        if not rows:
            raise DataError(f"{settings.source} holds no rows")
        rows_read, notes = len(rows), stream.notes
        rows = rows[: settings.limit]
        mapping = map_columns([row for _, row in rows[:ROWS_LOOKED_AT]], settings.columns, settings.source)
        assert mapping.prompt is not None, "map_columns raises otherwise"
        train, held_out = set_apart(rows, settings, mapping.prompt)
    kept = _samples(train, settings, mapping)
    evaluation = _samples(held_out, settings, mapping)
    dropped = len(train) + len(held_out) - len(kept) - len(evaluation)
    return DataSplits(kept, evaluation, rows_read, dropped, mapping, tuple(notes))


def open_rows(settings: DatasetSettings) -> RowStream:
    """The rows of a source as a stream.

    Raises:
        DataError: it is missing, of an unknown kind, or damaged (with the line, when that is reached).
    """
    if is_made(settings.source):
        return open_made(settings)
    return open_hub(settings) if is_on_hub(settings.source) else open_file(Path(settings.source).expanduser())


def read_rows(settings: DatasetSettings) -> list[Row]:
    """All rows of a source.

    Raises:
        DataError: as `open_rows`, or it holds no rows.
    """
    rows = list(open_rows(settings).rows)
    if not rows:
        raise DataError(f"{settings.source} holds no rows")
    return rows


def head(settings: DatasetSettings, count: int = 200) -> list[Row]:
    """The first rows of a source; no more of it is read than they take.

    Raises:
        DataError: as `read_rows`, as far as the first rows show it.
    """
    rows = list(itertools.islice(open_rows(settings).rows, count))
    if not rows:
        raise DataError(f"{settings.source} holds no rows")
    return rows


def _samples(rows: Sequence[Numbered], settings: DatasetSettings, mapping: ColumnMapping) -> tuple[Sample, ...]:
    found = (to_sample(row, settings, mapping, number) for number, row in rows)
    return tuple(sample for sample in found if sample is not None)
