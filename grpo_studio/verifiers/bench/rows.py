"""All rows of a data set for the bench, with their numbers: training and held-out rows are judged alike."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_studio import data
from grpo_studio.config import DatasetSettings
from grpo_studio.data import Sample


@dataclass(frozen=True)
class BenchRows:
    """The rows that have a prompt, in the order of the data set; `numbers` count all rows from 1."""

    samples: tuple[Sample, ...]
    numbers: tuple[int, ...]


def read_bench_rows(settings: DatasetSettings) -> BenchRows:
    """Read the rows, up to the row limit; those without a usable prompt are left out.

    Raises:
        DataError: the source cannot be read or lacks a mapped column.
    """
    if data.is_made(settings.source):
        splits = data.load(settings)
        samples = (*splits.train, *splits.held_out)
        return BenchRows(samples, tuple(range(1, len(samples) + 1)))
    rows = data.read_rows(settings)[: settings.limit]
    mapping = data.map_columns(rows, settings.columns, settings.source)
    made = (data.to_sample(row, settings, mapping, number) for number, row in enumerate(rows, 1))
    samples = tuple(sample for sample in made if sample is not None)
    return BenchRows(samples, tuple(sample.row for sample in samples))
