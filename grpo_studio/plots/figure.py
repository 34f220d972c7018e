"""What the figures are made of: lines, axes, colours by role."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

Figure = dict[str, Any]

BLUE, ORANGE, GREEN, GREY = "var(--blue)", "var(--orange)", "var(--green)", "var(--grey)"
VERIFIER_COLOURS = tuple(f"var(--verifier-{place})" for place in range(1, 7))
PHASE_COLOURS = {
    "rollout": BLUE,
    "score": GREEN,
    "reference": "var(--purple)",
    "loss": ORANGE,
    "optimizer": "var(--sky)",
    "sync": "var(--yellow)",
    "evaluate": "var(--brown)",
    "save": "var(--ink-3)",
}


def verifier_colour(place: int) -> str:
    """Colour of the n-th verifier of a run, the same in every chart and in the group inspector."""
    return VERIFIER_COLOURS[place % len(VERIFIER_COLOURS)]


def phase_colour(phase: str) -> str:
    return PHASE_COLOURS.get(phase, GREY)


def phase_order(phase: str) -> int:
    """Its place in a list of phases: the named ones as they come in a step, then all others."""
    return list(PHASE_COLOURS).index(phase) if phase in PHASE_COLOURS else len(PHASE_COLOURS)


def numbers(values: Iterable[Any], digits: int = 5) -> list[float | None]:
    """Values for JSON: so many significant digits, None for what is missing or not finite."""
    return [tidy(value, digits) for value in values]


def tidy(value: Any, digits: int = 5) -> float | None:
    """One value for JSON."""
    if value is None:
        return None
    number = float(value)
    if not math.isfinite(number):
        return None
    return float(f"{number:.{digits}g}")


def line(
    x: Sequence[int | float], y: Iterable[Any], name: str, colour: str, width: float = 2, **more: Any
) -> dict[str, Any]:
    """A line without markers, unless it has a single point, which no line would show."""
    values = numbers(y)
    lonely = sum(value is not None for value in values) == 1
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers" if lonely else "lines",
        "x": list(x),
        "y": values,
        "name": name,
        "line": {"color": colour, "width": width},
    }
    return trace | more


def figure(run: str, traces: list[dict[str, Any]], yaxis: dict[str, Any] | None = None, **layout: Any) -> Figure:
    """Traces over steps, with the layout that all charts share."""
    return {
        "data": traces,
        "layout": {
            "uirevision": run,
            "hovermode": "x unified",
            "showlegend": False,
            "xaxis": {"rangemode": "normal"},
            "yaxis": yaxis or {},
        }
        | layout,
    }


def right_axis(**more: Any) -> dict[str, Any]:
    """A second y axis on the right, without a grid of its own."""
    return {"overlaying": "y", "side": "right", "showgrid": False, "zeroline": False} | more


def has_values(values: Any) -> bool:
    """Whether a column holds at least one number."""
    return bool(values.notna().any())
