"""Data sets that are made in place: `builtin:` names and the tasks of reasoning_gym."""

from __future__ import annotations

from grpo_studio.config import DatasetSettings
from grpo_studio.data.made.arithmetic import builtin_rows
from grpo_studio.data.rows import RowStream
from grpo_studio.data.splitting import Numbered


def made_rows(settings: DatasetSettings) -> tuple[list[Numbered], list[Numbered], int]:
    """Train and held-out rows with their numbers, in a fixed order, and how many rows there are in all.

    Which rows are held out follows from the question alone, so that no run trains on what another is tested on.

    Raises:
        DataError: an unknown name, or settings that it does not take.
    """
    train, held_out, total = builtin_rows(settings)
    numbered = list(enumerate([*train, *held_out], start=1))
    return numbered[: len(train)], numbered[len(train) :], total


def open_made(settings: DatasetSettings) -> RowStream:
    """All rows, training before held-out."""
    train, held_out, _ = made_rows(settings)
    return RowStream(iter([row for _, row in [*train, *held_out]]))
