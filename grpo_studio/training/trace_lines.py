"""Straight lines through what was traced: bytes at each instant of a pass, for any depth and any batch.

The operations of a pass are the same ones whatever the batch, and those of a layer the same whatever the depth; so what
lives at one instant is linear in both, and the peak is the greatest of such lines, never a line itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Timeline = Mapping[str, Array]
"""For each stretch of a pass the instants at which something came to be, (instants, parts), in bytes."""
MOST_ROWS = 1 << 22


def lines(at: tuple[int, int], first: Timeline, second: Timeline) -> Array:
    """Lines through two timelines, (lines, 2, parts): the value at 0 and the slope, of every instant of both.

    A stretch whose instants do not match is taken as its greatest ones.
    """
    found = [_through(at, *_matched(first[name], second[name])) for name in first if name in second]
    return np.concatenate(found) if found else np.zeros((0, 2, 1))


def at_depth(depths: tuple[int, int], full: int, first: Timeline, second: Timeline) -> Timeline:
    """The timeline at another depth, of the stretches that both have."""
    if depths[0] == depths[1]:
        return first
    found = {}
    for name in first:
        if name in second:
            line = _through(depths, *_matched(first[name], second[name]))
            found[name] = line[:, 0] + line[:, 1] * full
    return found


def upper(found: Array) -> Array:
    """The lines that are the greatest for some batch from 1 on, smallest slope first."""
    totals = found.sum(axis=2)
    kept: list[int] = []
    batch = 1.0
    while True:
        values = totals[:, 0] + totals[:, 1] * batch
        best = int(np.lexsort((totals[:, 1], np.round(values, 3)))[-1])
        kept.append(best)
        steeper = totals[:, 1] > totals[best, 1] + 1e-9
        if not steeper.any():
            break
        crossing = (totals[best, 0] - totals[steeper, 0]) / (totals[steeper, 1] - totals[best, 1])
        batch = max(float(crossing.min()), batch) + 1e-6 * max(1.0, batch)
        if batch > MOST_ROWS:
            break
    return found[list(dict.fromkeys(kept))]


def values_at(found: Array, rows: int) -> Array:
    """(lines, parts) at a batch, not below 0."""
    at: Array = np.maximum(found[:, 0] + found[:, 1] * rows, 0.0)
    return at


def _through(at: tuple[int, int], first: Array, second: Array) -> Array:
    slope = (second - first) / (at[1] - at[0])
    return np.stack([first - slope * at[0], slope], axis=1)


def _matched(first: Array, second: Array) -> tuple[Array, Array]:
    if len(first) == len(second):
        return first, second
    return _greatest(first), _greatest(second)


def _greatest(series: Array) -> Array:
    return series[[int(series.sum(axis=1).argmax())]] if len(series) else np.zeros((1, series.shape[1]))


def rows_of(series: Sequence[Sequence[int]], parts: int) -> Array:
    """A recorded series as an array."""
    return np.array(series, dtype=np.float64).reshape(len(series), parts)
