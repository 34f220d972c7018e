"""Two runs over each other: A in blue, B in orange and thinner on top of it, so that both show where they are equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from grpo_studio.plots.figure import BLUE, ORANGE, Figure, figure, line, numbers
from grpo_studio.plots.time import ORDER

WIDTHS, THIN = (4.6, 1.8), (3.0, 1.4)
MANY_STEPS = 60
"""Lines over more steps than these are thin."""
LEAST_SLOT = 0.07
"""Share of a step that the shortest phase takes on the timeline: its peak must be seen."""
BAND = "var(--line)"
LABELS = ("a", "b")


def unit_of(greatest: float) -> tuple[float, str]:
    """What bytes are divided by for an axis, and the unit with a space before it."""
    return (1e9, " GB") if greatest >= 1e9 else (1e6, " MB")


def over_steps(a: pd.Series[Any], b: pd.Series[Any], pair: str, words: Mapping[str, str], **yaxis: Any) -> Figure:
    """One value of both runs over steps; both series have the same index.

    Args:
        words: "a" and "b", what the two are called.
        yaxis: what the axis has besides.
    """
    return figure(pair, _lines([int(step) for step in a.index], a, b, words), yaxis={"nticks": 5} | yaxis)


def with_step_marked(drawn: Figure, step: int | None, label: str) -> Figure:
    """The figure with a thin line at a step, and its label beside it."""
    if step is None:
        return drawn
    mark = {"width": 1, "color": "var(--ink-3)", "dash": "dot"}
    shape = {"type": "line", "x0": step, "x1": step, "yref": "paper", "y0": 0, "y1": 1, "line": mark, "layer": "below"}
    note = {
        "x": step, "y": 1, "yref": "paper", "yanchor": "top", "xanchor": "left", "xshift": 4, "showarrow": False,
        "text": label, "font": {"size": 11, "color": "var(--ink-3)"},
    }  # fmt: skip
    return drawn | {"layout": drawn["layout"] | {"shapes": [shape], "annotations": [note]}}


def by_phase(
    a: Mapping[str, float], b: Mapping[str, float], pair: str, words: Mapping[str, str], names: Mapping[str, str]
) -> Figure:
    """Two bars for each phase, in the order of a step.

    Args:
        a, b: the value of each phase.
        words: "a", "b", and "unit" with a space before it.
        names: what phases are called.
    """
    phases = [phase for phase in ORDER if phase in a or phase in b]
    phases += [phase for phase in (*a, *b) if phase not in ORDER and phase not in phases]
    bars: list[dict[str, Any]] = [
        {
            "type": "bar",
            "x": [escape(names.get(phase, phase)) for phase in phases],
            "y": numbers((values.get(phase) for phase in phases), 4),
            "name": words[label],
            "marker": {"color": colour, "line": {"width": 0}},
            "hovertemplate": f"%{{y:.3~g}}{words['unit']}",
        }
        for label, colour, values in zip(LABELS, (BLUE, ORANGE), (a, b), strict=True)
    ]
    axis = {"ticksuffix": words["unit"], "rangemode": "tozero", "nticks": 5}
    return figure(
        pair,
        bars,
        yaxis=axis,
        barmode="group",
        bargap=0.35,
        bargroupgap=0.08,
        xaxis={"type": "category", "tickangle": 0},
    )


def timeline(
    a: pd.DataFrame,
    b: pd.DataFrame,
    seconds: Sequence[Mapping[str, float]],
    pair: str,
    words: Mapping[str, str],
) -> Figure:
    """Memory within steps, phase on phase; the loss phase as grey bands.

    Each phase is drawn as wide in both runs, whatever time it took in either.

    Args:
        a, b: columns step, phase, share (where in its phase), value (bytes).
        seconds: mean seconds of each phase in either run.
        words: "a", "b", and "sample", the note of a point, with {unit}.
    """
    slots = _slots([str(phase) for frame in (a, b) for phase in frame["phase"]], seconds)
    greatest = [float(frame["value"].max()) for frame in (a, b) if len(frame)]
    size, unit = unit_of(max(greatest, default=0.0))
    traces = []
    for label, colour, width, frame in zip(LABELS, (BLUE, ORANGE), WIDTHS, (a, b), strict=True):
        rows = sorted(
            zip(frame["step"], frame["phase"], frame["share"], frame["value"], strict=True), key=_place(slots)
        )
        places = [_place(slots)(row) for row in rows]
        traces.append(
            line(places, [row[3] / size for row in rows], words[label], colour, width)
            | {"text": [escape(str(row[1])) for row in rows], "hovertemplate": words["sample"].replace("{unit}", unit)}
        )
    steps = sorted({int(step) for frame in (a, b) for step in frame["step"]})
    bands = [_band(step, *slots["loss"]) for step in steps if "loss" in slots]
    axis: dict[str, Any] = {"rangemode": "normal", "tickmode": "array", "tickvals": steps}
    if steps:
        axis["range"] = [steps[0] - 0.5, steps[-1] + 0.5]
    axis_of_bytes = {"ticksuffix": unit, "nticks": 5, "rangemode": "tozero"}
    return figure(pair, traces, yaxis=axis_of_bytes, hovermode="closest", xaxis=axis, shapes=bands)


def _lines(steps: list[int], a: Any, b: Any, words: Mapping[str, str]) -> list[dict[str, Any]]:
    widths = THIN if len(steps) > MANY_STEPS else WIDTHS
    return [
        line(steps, values, words[label], colour, width, connectgaps=False)
        for label, colour, width, values in zip(LABELS, (BLUE, ORANGE), widths, (a, b), strict=True)
    ]


def _slots(phases: Sequence[str], seconds: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    """Where in a step each phase begins and ends, from 0 to 1: as wide as it takes long in the mean of both runs."""
    seen = list(dict.fromkeys(phases))
    order = [phase for phase in ORDER if phase in seen] + [phase for phase in seen if phase not in ORDER]
    took = {phase: sum(one.get(phase, 0.0) for one in seconds) for phase in order}
    total = sum(took.values()) or 1.0
    widths = {phase: max(LEAST_SLOT, took[phase] / total) for phase in order}
    whole, begins, slots = sum(widths.values()), 0.0, {}
    for phase, width in widths.items():
        slots[phase] = (begins, begins + width / whole)
        begins += width / whole
    return slots


def _place(slots: Mapping[str, tuple[float, float]]) -> Any:
    """Where on the axis a sample lies: the whole of step 3 is from 2.5 to 3.5."""

    def place(row: Sequence[Any]) -> float:
        begin, end = slots[str(row[1])]
        return round(float(row[0]) - 0.5 + begin + (end - begin) * float(row[2]), 4)

    return place


def _band(step: int, begin: float, end: float) -> dict[str, Any]:
    return {
        "type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": step - 0.5 + begin, "x1": step - 0.5 + end,
        "fillcolor": BAND, "opacity": 0.6, "line": {"width": 0}, "layer": "below",
    }  # fmt: skip
