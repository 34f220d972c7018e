"""A part of a data set, as large as a run needs it, mixed: what `dataset.streaming` reads.

All of it is read before the run begins, so nothing can fail by the network in its middle, and every process of a run,
also of a resumed one, holds the same rows.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from grpo_studio.config import DatasetSettings
from grpo_studio.data.splitting import Numbered, prompt_key, set_apart
from grpo_studio.errors import DataError

SHUFFLE_BUFFER = 10_000
"""Rows among which each next one is picked, so that a set that is ordered by kind or by hardness comes mixed."""
SHUFFLE_SEED = 0
"""Always this one: runs with different training seeds train on the same rows (the order is their own seed's), as do
all processes of a run and a resumed one, which know nothing of each other's picks."""
MOST_ROWS = 2_000_000
"""Training rows that are held in memory."""
Item = TypeVar("Item")


@dataclass(frozen=True)
class Part:
    """Rows of a stream for training, mixed, and those held out."""

    train: list[Numbered]
    held_out: list[Numbered]


def window(rows: Iterator[Numbered], settings: DatasetSettings) -> list[Numbered]:
    """The first rows: all from which held-out rows are taken, whatever the run's length."""
    return list(itertools.islice(rows, settings.held_out + SHUFFLE_BUFFER))


def part_of(
    first: list[Numbered],
    rest: Iterator[Numbered],
    settings: DatasetSettings,
    prompt: str,
    wanted: int,
    usable: Callable[[Numbered], bool],
) -> Part:
    """As many rows for training as are wanted, or all when there are fewer; the `first` ones are all `usable`.

    Held-out rows come from the `first` ones alone, and no later row of their prompts is trained on. So a longer run is
    measured on the same rows, and trains on the same ones first.

    Raises:
        DataError: nothing would be left to train on.
    """
    train, held_out = set_apart(first, settings, prompt)
    chosen = {prompt_key(row, prompt) for _, row in held_out}
    later = (row for row in rest if prompt_key(row[1], prompt) not in chosen and usable(row))
    mixed = buffered(itertools.chain(train, later), SHUFFLE_BUFFER, random.Random(SHUFFLE_SEED))
    return Part(list(itertools.islice(mixed, wanted)), held_out)


def buffered(items: Iterable[Item], size: int, picker: random.Random) -> Iterator[Item]:
    """The items in a mixed order: each is picked from a buffer of the next `size` ones."""
    source = iter(items)
    buffer = list(itertools.islice(source, size))
    for item in source:
        index = picker.randrange(len(buffer))
        yield buffer[index]
        buffer[index] = item
    picker.shuffle(buffer)
    yield from buffer


def require_room(wanted: int) -> None:
    """Refuse a run that asks for more rows than are held.

    Raises:
        DataError: with the number.
    """
    if wanted > MOST_ROWS:
        raise DataError(
            f"a streamed run reads a row for each prompt, here {wanted:,}, and at most {MOST_ROWS:,} are held; "
            "use fewer steps or prompts a step, or set dataset.streaming to false"
        )


def told(part: Part, settings: DatasetSettings, wanted: int, rows_read: int, whole: bool) -> list[str]:
    """Notes on what was read and what was not."""
    got = len(part.train)
    if not whole and got >= wanted:
        return [
            f"{rows_read:,} rows were read, what the run needs: {got:,} to train on, {len(part.held_out):,} held out "
            f"and up to {SHUFFLE_BUFFER:,} to mix; the rest of {settings.source} was not looked at"
        ]
    ends = f"{settings.source} ends after {rows_read:,} rows" if whole else f"dataset.limit ends it after {rows_read:,}"
    if got >= wanted:
        return [f"{ends}, {got:,} of them are trained on"]
    return [f"{ends}: the run goes over the {got:,} to train on {wanted / got:.3g} times"]
