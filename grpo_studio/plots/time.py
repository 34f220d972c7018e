"""Where the seconds of a step go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from grpo_studio.plots.figure import Figure, figure, numbers, phase_colour

ORDER = ("rollout", "score", "reference", "loss", "optimizer", "sync", "evaluate", "save", "other")


def time_figure(frame: pd.DataFrame, run: str, names: Mapping[str, str]) -> Figure:
    """Seconds by phase as stacked bars.

    Args:
        frame: indexed by step, one column a phase.
        names: what each phase is called.
    """
    known = [phase for phase in ORDER if phase in frame]
    phases = [*known, *(str(name) for name in frame if name not in ORDER)]
    steps = [int(step) for step in frame.index]
    traces: list[dict[str, Any]] = [
        {
            "type": "bar",
            "x": steps,
            "y": numbers(frame[phase], 3),
            "name": names.get(phase, phase),
            "marker": {"color": phase_colour(phase), "line": {"width": 0}},
            "hovertemplate": "%{y:.3~g} s",
        }
        for phase in phases
    ]
    return figure(run, traces, yaxis={"ticksuffix": " s", "nticks": 4}, barmode="stack", bargap=0.08)
