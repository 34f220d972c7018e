"""Reward over steps: mean with its spread, what each verifier adds, and the held-out score as dots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from grpo_studio.plots.figure import BLUE, Figure, figure, line, numbers, verifier_colour


def reward_figure(
    frame: pd.DataFrame,
    evaluations: pd.DataFrame,
    rewards: Sequence[tuple[str, float]],
    run: str,
    words: dict[str, str],
) -> Figure:
    """Draw the reward.

    Args:
        frame: indexed by step; `reward/mean`, `reward/std` and `reward/<name>/mean` of each reward.
        evaluations: columns step and `eval/reward`.
        rewards: (name, weight); a verifier's line is weight times its mean score, so that the lines add up to the mean.
        words: "mean", "spread", "held_out", "weighted" (with {name} and {weight}).
    """
    steps = [int(step) for step in frame.index]
    mean, spread = frame["reward/mean"], frame["reward/std"].fillna(0.0)
    edge = {"line": {"width": 0, "color": BLUE}, "hoverinfo": "skip", "showlegend": False}
    traces = [
        line(steps, mean - spread, words["spread"], BLUE) | edge,
        line(steps, mean + spread, words["spread"], BLUE, fill="tonexty", fillcolor="var(--band)") | edge,
    ]
    for place, (name, weight) in enumerate(rewards):
        column = f"reward/{name}/mean"
        if column in frame:
            label = words["weighted"].format(name=name, weight=f"{weight:g}")
            traces.append(line(steps, frame[column] * weight, label, verifier_colour(place), 1.3))
    traces.append(line(steps, mean, words["mean"], BLUE, 2.6))
    if "eval/reward" in evaluations:
        traces.append(_dots(evaluations, words["held_out"]))
    return figure(run, traces, yaxis={"range": _bounds(traces[1:])})


def _bounds(traces: list[dict[str, Any]]) -> list[float] | None:
    """From 0, or the lowest line, to the highest: the band's lower edge may leave the picture, as rewards may not."""
    values = [value for trace in traces for value in trace["y"] if value is not None]
    if not values:
        return None
    low, high = min(0.0, *values), max(*values, 0.0)
    margin = (high - low or 1.0) * 0.04
    return [low - margin if low < 0 else -margin / 2, high + margin]


def _dots(evaluations: pd.DataFrame, name: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [int(step) for step in evaluations["step"]],
        "y": numbers(evaluations["eval/reward"]),
        "name": name,
        "cliponaxis": False,
        "marker": {"size": 9, "color": "var(--card)", "line": {"width": 2, "color": "var(--ink)"}},
    }
