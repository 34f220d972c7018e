"""Memory in use over time, on each device: phases as bands where they can be told apart, else as coloured points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from grpo_studio.plots.figure import GREY, Figure, figure, has_values, line, numbers, phase_colour, verifier_colour

GB = 1e9
UNNAMED = "other"
"""The phase between the named ones: it has no band."""
ROOM = 1.12
"""The chart's upper end, over the most that it shows."""
FAR = 2.5
"""A card larger than so many times the most in use is named at the upper edge: as a line it would flatten the chart."""
BAND = 0.16
PAUSE = 5.0
"""Seconds that stand between two attempts, whatever the time between them was."""
LONGEST_GAP = 1e8
"""Seconds between two samples above which a clock was set, and no time went by."""
Words = Mapping[str, str]


@dataclass(frozen=True)
class _Drawing:
    """What all parts of the figure need."""

    words: Words
    names: Words
    top: float

    def phase(self, phase: str) -> str:
        return self.names.get(phase, phase)


def memory_figure(
    frame: pd.DataFrame, run: str, words: Words, names: Words, size: int = 0, others: pd.Series[Any] | None = None
) -> Figure:
    """Draw what each device has allocated, or the process's resident memory where no count is kept (CPU).

    A trace's `meta` names its device, so that a page can show one of several; the layout's `meta` lists the devices and
    the span of time in which every sample is shown.

    Args:
        frame: columns ts (seconds), step, phase, allocated, reserved, rss (bytes, NaN where there is none), and, where
            there are several devices or attempts, device, attempt, exact (`queries.MemoryHistory`).
        words: "allocated", "tensors", "reserved", "rss", "others", "peak", "card" and "machine" (with {size}),
            "attempt" (with {attempt}), "memory_hover" (the template of a sample's note).
        names: what each phase is called.
        size: bytes of the card, or of the machine on a CPU; 0: not known.
        others: bytes that other processes hold on the card, by step.
    """
    if frame.empty:
        return figure(run, [])
    frame = _completed(frame)
    devices = [str(device) for device in dict.fromkeys(frame["device"])]
    shown = frame[["in_use", "reserved", "rss"]].max().max() if has_values(frame["in_use"]) else 0.0
    if others is not None:
        frame["others"] = frame["step"].map(others) / GB
        shown = max(shown, frame["others"].max()) if has_values(frame["others"]) else shown
    drawing = _Drawing(words, names, _top(float(shown), size / GB))
    traces = [trace for place, device in enumerate(devices) for trace in _of_device(frame, device, place, drawing)]
    if others is not None and has_values(frame["others"]):
        held = frame.dropna(subset="others").drop_duplicates("step")
        traces.append(line(_minutes(held["minutes"]), held["others"], words["others"], "var(--brown)", 1.5))
    layout = _layout(frame, devices)
    for mark in _marks(frame, size, devices, drawing):
        layout["shapes"] += mark.pop("shape")
        layout["annotations"].append(mark)
    yaxis = {"ticksuffix": " GB", "range": [0, round(drawing.top, 6)], "nticks": 5}
    return figure(run, traces, yaxis=yaxis, **layout)


def _layout(frame: pd.DataFrame, devices: list[str]) -> dict[str, Any]:
    newest = frame.loc[frame["exact"], "minutes"]
    span = [float(newest.min()), float(newest.max())] if len(newest) else None
    return {
        "hovermode": "closest",
        "xaxis": {
            "ticksuffix": " min",
            "tickangle": 0,
            "nticks": 6,
            "range": [0, max(0.01, float(frame["minutes"].max()))],
        },
        "meta": {"devices": devices, "newest": span, "whole": bool(frame["exact"].all())},
        "shapes": [],
        "annotations": [],
    }


def _completed(frame: pd.DataFrame) -> pd.DataFrame:
    """With the columns that a caller may leave out, gigabytes, and the minutes of the run: pauses are cut short."""
    defaults: dict[str, Any] = {"device": "", "attempt": 1, "exact": False}
    frame = frame.assign(**{name: value for name, value in defaults.items() if name not in frame})
    gone = frame["ts"].diff()
    gone = gone.where(gone.between(0, LONGEST_GAP), 0.0)  # a clock that is set back or far ahead tells nothing
    resumed = frame["attempt"] != frame["attempt"].shift(fill_value=frame["attempt"].iloc[0])
    gone[resumed] = gone[resumed].clip(upper=PAUSE)
    frame = frame.assign(minutes=(gone.cumsum() / 60).round(4), resumed=resumed)
    frame[["allocated", "reserved", "rss"]] = frame[["allocated", "reserved", "rss"]] / GB
    return frame.assign(in_use=frame["allocated"].fillna(frame["rss"]))


def _top(shown: float, size: float) -> float:
    top = shown * ROOM or 1.0
    return max(top, size * 1.04) if 0 < size <= FAR * shown else top


def _of_device(frame: pd.DataFrame, device: str, place: int, drawing: _Drawing) -> Iterator[dict[str, Any]]:
    part = frame[frame["device"] == device]
    minutes, words = _minutes(part["minutes"]), drawing.words
    counted = has_values(part["allocated"])
    name = words["rss"] if not counted else words["tensors"] if device.startswith("cpu") else words["allocated"]
    meta = {"device": device}
    for band in _bands(part, drawing):
        yield band | {"meta": meta | {"band": True}}
    if counted and has_values(part["reserved"]):
        yield line(minutes, part["reserved"], words["reserved"], GREY, 1, meta=meta, hoverinfo="skip")
    if counted:
        thin = {"color": "var(--ink-3)", "width": 1, "dash": "dot"}
        yield line(minutes, part["rss"], words["rss"], GREY, 1, meta=meta, hoverinfo="skip") | {"line": thin}
    notes = [
        [escape(drawing.phase(str(phase))), int(step)] for phase, step in zip(part["phase"], part["step"], strict=True)
    ]
    more = {"customdata": notes, "hovertemplate": words["memory_hover"]}
    own = {"main": True, "colour": verifier_colour(place)}
    yield line(minutes, part["in_use"], name, "var(--ink-2)", 1.25, meta=meta | own, **more)
    for points in _points(part[~part["exact"]], bool(part["exact"].any()), drawing):
        yield points | {"meta": meta}


def _bands(part: pd.DataFrame, drawing: _Drawing) -> Iterator[dict[str, Any]]:
    """A filled trace for each phase: from the sample before to its own, in the time of which no sample is left out."""
    exact = part[part["exact"]]
    spans: dict[str, list[list[float]]] = {}
    before, attempt_before = 0.0, None
    for minute, phase, attempt in zip(exact["minutes"], exact["phase"], exact["attempt"], strict=True):
        if attempt == attempt_before and phase != UNNAMED and minute > before:
            of_phase = spans.setdefault(str(phase), [])
            if of_phase and of_phase[-1][1] == before:
                of_phase[-1][1] = float(minute)
            else:
                of_phase.append([float(before), float(minute)])
        before, attempt_before = minute, attempt
    for phase, ends in spans.items():
        yield {
            "type": "scatter",
            "mode": "lines",
            "x": [x for start, end in ends for x in (start, start, end, end, None)],
            "y": [y for _ in ends for y in (0, drawing.top, drawing.top, 0, None)],
            "fill": "toself",
            "fillcolor": phase_colour(phase),
            "opacity": BAND,
            "line": {"width": 0, "color": phase_colour(phase)},
            "name": drawing.phase(phase),
            "hoverinfo": "skip",
        }


def _points(part: pd.DataFrame, banded: bool, drawing: _Drawing) -> Iterator[dict[str, Any]]:
    """What is left of the older samples: the greatest of their neighbours, in the colour of its phase."""
    for phase, rows in part.groupby("phase", sort=False):
        yield {
            "type": "scatter",
            "mode": "markers",
            "x": _minutes(rows["minutes"]),
            "y": numbers(rows["in_use"], 4),
            "name": drawing.phase(str(phase)),
            "marker": {"color": phase_colour(str(phase)), "size": 4},
            "hoverinfo": "skip",
            "showlegend": not banded or str(phase) == UNNAMED,
        }


def _marks(frame: pd.DataFrame, size: int, devices: list[str], drawing: _Drawing) -> Iterator[dict[str, Any]]:
    """Notes, each with the lines that go with it: the peak, the card's size, where an attempt begins."""
    words, peak = drawing.words, frame["in_use"].max()
    if has_values(frame["in_use"]):
        dashed = {"color": "var(--ink-2)", "width": 1, "dash": "dash"}
        text = words["peak"].format(size=f"{peak:.3g} GB")
        yield _level(float(peak), dashed) | {"x": 1, "xanchor": "right", "yanchor": "bottom", "text": text}
    if size:
        kind = "machine" if devices[0].startswith("cpu") else "card"
        text = words[kind].format(size=f"{size / GB:.3g} GB")
        level = size / GB
        if level <= drawing.top:
            red = {"color": "var(--fault)", "width": 1, "dash": "dot"}
            yield _level(level, red) | {"x": 0, "xanchor": "left", "yanchor": "top", "text": text}
        else:
            yield _level(drawing.top, None) | {"x": 0, "xanchor": "left", "yanchor": "top", "text": f"{text} ↑"}
    for minute, attempt in frame.loc[frame["resumed"], ["minutes", "attempt"]].itertuples(index=False):
        dotted = {"color": "var(--ink-3)", "width": 1, "dash": "dot"}
        shape = {"type": "line", "yref": "paper", "x0": minute, "x1": minute, "y0": 0, "y1": 1, "line": dotted}
        note = {"x": minute, "yref": "paper", "y": 0, "xanchor": "left", "yanchor": "bottom", "showarrow": False}
        yield note | {"shape": [shape], "text": words["attempt"].format(attempt=int(attempt))}


def _level(y: float, drawn: dict[str, Any] | None) -> dict[str, Any]:
    """A note at a height, with a line through the whole chart if it is drawn."""
    shape = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": drawn}
    return {"shape": [shape] if drawn else [], "xref": "paper", "y": y, "showarrow": False}


def _minutes(minutes: pd.Series[Any]) -> list[float]:
    return [float(minute) for minute in minutes]
