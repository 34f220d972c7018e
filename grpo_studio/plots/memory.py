"""Memory in use over time, coloured by phase, with the peak as a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from grpo_studio.plots.figure import GREY, Figure, figure, has_values, line, numbers, phase_colour

GB = 1e9


def memory_figure(frame: pd.DataFrame, run: str, words: Mapping[str, str], names: Mapping[str, str]) -> Figure:
    """Draw what the device allocated, or the process's resident memory where the device keeps no count (CPU).

    Args:
        frame: columns ts, step, phase, allocated, reserved, rss; bytes, in order of time.
        words: "allocated", "reserved", "rss", "peak" (with {size}), "memory_hover" (the template of a sample's note).
        names: what each phase is called.
    """
    if frame.empty:
        return figure(run, [])
    main = "allocated" if has_values(frame["allocated"]) else "rss"
    minutes = ((frame["ts"] - frame["ts"].iloc[0]) / 60).round(3).tolist()
    values = frame[main] / GB
    traces = [line(minutes, values, words[main], "var(--ink-3)", 1, hoverinfo="skip")]
    if main == "allocated" and has_values(frame["reserved"]):
        traces.append(line(minutes, frame["reserved"] / GB, words["reserved"], GREY, 1))
    traces += _by_phase(frame.assign(minutes=minutes, value=values), words["memory_hover"], names)
    layout: dict[str, Any] = {"hovermode": "closest", "xaxis": {"ticksuffix": " min"}}
    if has_values(values):
        layout |= _peak_line(float(values.max()), words["peak"])
    return figure(run, traces, yaxis={"ticksuffix": " GB", "rangemode": "tozero", "nticks": 5}, **layout)


def _by_phase(frame: pd.DataFrame, hover: str, names: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": numbers(part["minutes"]),
            "y": numbers(part["value"], 4),
            "customdata": [int(step) for step in part["step"]],
            "name": names.get(str(phase), str(phase)),
            "marker": {"color": phase_colour(str(phase)), "size": 4},
            "hovertemplate": hover,
        }
        for phase, part in frame.groupby("phase", sort=False)
    ]


def _peak_line(peak: float, label: str) -> dict[str, Any]:
    dashed = {"color": "var(--ink-2)", "width": 1, "dash": "dash"}
    shape = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": peak, "y1": peak, "line": dashed}
    note = {
        "xref": "paper", "x": 1, "y": peak, "xanchor": "right", "yanchor": "bottom", "showarrow": False,
        "text": label.format(size=f"{peak:.3g} GB"),
    }  # fmt: skip
    return {"shapes": [shape], "annotations": [note]}
