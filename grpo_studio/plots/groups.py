"""Groups over steps: how many can teach anything, and how the advantages are spread."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from grpo_studio.plots.figure import BLUE, GREY, ORANGE, Figure, figure, line, numbers

BINS = 17
LEAST_LIMIT = 1.0
BRIGHTEST = 0.5
"""Share of a step's completions at which the scale ends, so that colours mean the same in every run."""


def group_mix_figure(frame: pd.DataFrame, run: str, words: dict[str, str]) -> Figure:
    """Shares of mixed, all-good and all-bad groups, stacked. `frame` is indexed by step."""
    steps = [int(step) for step in frame.index]
    parts = (("mixed", BLUE), ("all_good", ORANGE), ("all_bad", GREY))
    traces = [
        line(
            steps, frame[f"group/{kind}"], words[kind], colour, 0,
            stackgroup="groups", fillcolor=colour, hovertemplate="%{y:.0%}",
        )
        for kind, colour in parts
    ]  # fmt: skip
    for trace in traces:
        trace["line"]["shape"] = "hvh"
    return figure(run, traces, yaxis={"range": [0, 1], "tickformat": ".0%", "nticks": 3})


def advantage_figure(frame: pd.DataFrame, run: str, words: dict[str, str]) -> Figure:
    """Share of a step's completions in each band of advantage, as a heat map.

    Args:
        frame: columns step and advantage, a row a completion.
    """
    if frame.empty:
        return figure(run, [])
    limit = max(LEAST_LIMIT, math.ceil(float(frame["advantage"].abs().max()) * 2) / 2)
    width = 2 * limit / BINS
    places = ((frame["advantage"] + limit) / width).astype(int).clip(0, BINS - 1)
    steps = sorted(set(frame["step"].tolist()))
    shares = _shares(frame["step"].tolist(), places.tolist(), {step: column for column, step in enumerate(steps)})
    heat: dict[str, Any] = {
        "type": "heatmap",
        "x": [int(step) for step in steps],
        "y": numbers(-limit + width * (number + 0.5) for number in range(BINS)),
        "z": [numbers(row, 3) for row in shares],
        "colorscale": "Cividis",
        "showscale": False,
        "zmin": 0,
        "zmax": BRIGHTEST,
        "name": words["advantage"],
        "hovertemplate": words["advantage_hover"],
    }
    return figure(run, [heat], yaxis={"range": [-limit, limit], "nticks": 5}, hovermode="closest")


def _shares(steps: list[int], places: list[int], columns: dict[int, int]) -> list[list[float]]:
    """One row a band, one column a step: the share of the step's values in that band."""
    counts = [[0] * len(columns) for _ in range(BINS)]
    totals = [0] * len(columns)
    for step, place in zip(steps, places, strict=True):
        counts[place][columns[step]] += 1
        totals[columns[step]] += 1
    return [[count / total for count, total in zip(row, totals, strict=True)] for row in counts]
