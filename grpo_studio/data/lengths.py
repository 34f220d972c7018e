"""How long the prompts of a data set are, beside the room that a model's context leaves for them. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from grpo_studio.data.row_numbers import SHOWN

BINS = 40
"""At most so many bars."""
_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class PromptLengths:
    """A histogram of prompt lengths in tokens.

    Args:
        edges: bar i holds the lengths from `edges[i]` up to, but not including, `edges[i + 1]`; empty for no rows.
        counts: rows of each bar, one fewer than the edges.
        longest, median, p95: lengths that rows do have (the nearest rank); 0 for no rows.
        context: tokens that the model, or the engine that samples, takes at once; None when that is not known.
        room: what the longest completion leaves of the context to a prompt; not above 0 when it leaves nothing.
        too_long: rows whose prompt is longer than the room.
        too_long_rows: the first of their numbers.
    """

    edges: tuple[int, ...]
    counts: tuple[int, ...]
    longest: int
    median: int
    p95: int
    context: int | None
    room: int | None
    too_long: int
    too_long_rows: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """By the names that `check --json` prints."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}


def prompt_lengths(
    tokens: Sequence[int], rows: Sequence[int], context: int | None = None, completion: int = 0
) -> PromptLengths:
    """The histogram of these lengths; `rows` are the numbers of their rows."""
    edges, counts = histogram(tokens)
    ranked = sorted(tokens)
    room = None if context is None else context - completion
    beyond = [row for row, count in zip(rows, tokens, strict=True) if not fits(count, room)]
    return PromptLengths(
        edges,
        counts,
        ranked[-1] if ranked else 0,
        _ranked_at(ranked, 0.5),
        _ranked_at(ranked, 0.95),
        context,
        room,
        len(beyond),
        tuple(beyond[:SHOWN]),
    )


def fits(tokens: int, room: int | None) -> bool:
    """Whether a prompt of so many tokens leaves room for a completion; where the room is not known it does."""
    return room is None or tokens <= room


def histogram(values: Sequence[int], bins: int = BINS) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Edges and counts of at most so many bars of one width: the smallest of 1, 2, 5, 10, 20, 50 ... that does."""
    if not values:
        return (), ()
    low, high = min(values), max(values)
    width = next(width for width in _widths() if high // width - low // width < bins)
    first, last = low // width, high // width
    found = Counter(value // width for value in values)
    places = range(first, last + 1)
    return tuple(place * width for place in range(first, last + 2)), tuple(found[place] for place in places)


def histogram_of(lengths: PromptLengths, bins: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The histogram with fewer, wider bars: at most so many."""
    if len(lengths.counts) <= bins:
        return lengths.edges, lengths.counts
    lows = [low for low, count in zip(lengths.edges, lengths.counts, strict=False) if count]
    edges, _ = histogram(lows, bins)
    width = edges[1] - edges[0]
    counts = [0] * (len(edges) - 1)
    for low, count in zip(lengths.edges, lengths.counts, strict=False):
        counts[(low - edges[0]) // width] += count
    return edges, tuple(counts)


def _widths() -> Iterator[int]:
    return (step * 10**power for power in range(64) for step in _STEPS)


def _ranked_at(ranked: Sequence[int], share: float) -> int:
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)] if ranked else 0
