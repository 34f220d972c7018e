"""Thin lines where the attempts of a run begin, for any figure over steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grpo_studio.plots.figure import Figure

LINE = {"width": 1, "color": "var(--ink-3)", "dash": "dot"}


def with_attempts(figure: Figure, starts: Iterable[tuple[int, int]], word: str) -> Figure:
    """The figure with a line for each attempt.

    Args:
        starts: (attempt, step after which it begins), oldest first; the first attempt needs no line, and what a later
            one went back before has none left.
        word: with {attempt}, stands at the line's top.
    """
    marks = _still_seen([(attempt, step) for attempt, step in starts])
    if not marks:
        return figure
    shapes = [
        {"type": "line", "x0": step, "x1": step, "yref": "paper", "y0": 0, "y1": 1, "line": LINE, "layer": "below"}
        for _, step in marks
    ]
    return figure | {"layout": figure["layout"] | {"shapes": shapes, "annotations": _labels(marks, word)}}


def _still_seen(starts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    later = [min((step for _, step in starts[place + 1 :]), default=own) for place, (_, own) in enumerate(starts)]
    return [
        (attempt, step)
        for (attempt, step), least in zip(starts, later, strict=True)
        if attempt > 1 and 0 < step <= least
    ]


def _labels(marks: list[tuple[int, int]], word: str) -> list[dict[str, Any]]:
    """One label a step: of attempts that begin at the same step the newest."""
    newest = {step: attempt for attempt, step in marks}
    return [
        {
            "x": step, "y": 1, "yref": "paper", "yanchor": "top", "xanchor": "left", "xshift": 3, "showarrow": False,
            "text": word.format(attempt=attempt), "font": {"size": 11, "color": "var(--ink-3)"},
        }
        for step, attempt in newest.items()
    ]  # fmt: skip
