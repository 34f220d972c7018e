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
LEVEL = 1e-6
"""Bytes a completion below which two slopes are one."""


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
    """The lines that are the greatest for some batch from 1 on, smallest slope first: their upper envelope."""
    totals = found.sum(axis=2)
    kept: list[int] = []
    begins: list[float] = []  # the batch from which each of the kept is the greatest
    for place in np.lexsort((totals[:, 0], totals[:, 1])):
        start, slope = totals[place]
        begin = 1.0
        while kept:
            before = totals[kept[-1]]
            if slope - before[1] > LEVEL:
                begin = (before[0] - start) / (slope - before[1])
            else:
                begin = 1.0 if start >= before[0] else np.inf
            if begin > begins[-1]:
                break
            kept.pop()
            begins.pop()
        if not kept:
            begin = 1.0
        if begin < np.inf:
            kept.append(int(place))
            begins.append(max(begin, 1.0))
    return found[kept]


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


def rows_of(series: Sequence[Sequence[int]]) -> Array:
    """A recorded series as an array."""
    return np.array(series, dtype=np.float64)
