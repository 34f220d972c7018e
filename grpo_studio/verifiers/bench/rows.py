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
    everything = settings if data.is_made(settings.source) else settings.model_copy(update={"held_out": 0})
    splits = data.load(everything)
    samples = sorted((*splits.train, *splits.held_out), key=lambda sample: sample.row)
    return BenchRows(tuple(samples), tuple(sample.row for sample in samples))
