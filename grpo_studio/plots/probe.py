"""Peak memory against batch, one line a loss backend: the form of the published figure, for a probe and a forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grpo_studio.plots.figure import GREY, Figure, figure, line, tidy

GB = 1e9
BACKEND_COLOURS = {"full": "var(--backend-full)", "trl": "var(--backend-trl)", "liger": "var(--backend-liger)"}
WIDTHS = {"trl": 4.0}
"""Broader than the others: where Liger's line lies on TRL's, both are seen."""
LOGARITHMIC_FROM = 300
"""A chart that goes so far doubles its batch from tick to tick: the usual sizes would be one dot otherwise."""
MOST_TICKS = 8
SYMBOLS = {"full": "circle", "trl": "square", "liger": "diamond"}
"""Told apart without colours, too."""
DASHED = frozenset({"bfloat16", "float16"})
CARD_SHOWN_WITHIN = 3.0
"""A card is drawn when it is at most so many times the greatest peak: a line far above would flatten the others."""
HEADROOM = 1.08


@dataclass(frozen=True)
class PeakLine:
    """One line of the chart.

    Args:
        name: what the legend calls it.
        backend: a loss backend; it gives the colour.
        dtype: "float32" is drawn solid, 16 bits dashed, "" (a forecast, which has one) solid.
        points: batch and peak in bytes, in order of the batch.
        lost_at: the batch at which memory ran out; None when it did not.
    """

    name: str
    backend: str
    dtype: str
    points: Sequence[tuple[float, float]]
    lost_at: float | None = None


def backend_colour(backend: str) -> str:
    return BACKEND_COLOURS.get(backend, GREY)


def peak_figure(lines: Sequence[PeakLine], card_bytes: float | None, key: str, words: Mapping[str, str]) -> Figure:
    """Draw the lines against the card.

    Args:
        card_bytes: the card, as a dotted line where it is not far above all lines; None without one.
        key: names what is drawn, so that a zoom outlives a redraw of the same.
        words: "ended" (hover note of a line's end by memory) and "card" (with {size}).
    """
    if not any(one.points for one in lines):
        return figure(key, [])
    highest = max(peak for one in lines for _, peak in one.points)
    card = card_bytes if card_bytes is not None and shows_card(highest, card_bytes) else None
    traces = [trace for one in lines for trace in (*_line(one), *_end(one, highest if card is None else card, words))]
    top = max(highest, card or 0.0) * HEADROOM / GB
    layout: dict[str, Any] = {"hovermode": "closest", "xaxis": _batches([x for one in lines for x, _ in one.points])}
    if card is not None:
        layout |= _card_line(card / GB, words["card"])
    return figure(key, traces, yaxis={"ticksuffix": " GB", "range": [0, tidy(top, 6)], "nticks": 6}, **layout)


def shows_card(highest: float, card_bytes: float | None) -> bool:
    """Whether the card is near enough to the greatest peak to be drawn."""
    return card_bytes is not None and card_bytes <= CARD_SHOWN_WITHIN * highest


def _batches(sizes: Sequence[float]) -> dict[str, Any]:
    most = max(sizes)
    if most < LOGARITHMIC_FROM or min(sizes) < 1:
        return {"rangemode": "tozero"}
    powers = int(most).bit_length()
    ticks = [1 << power for power in range(0, powers, 1 if powers <= MOST_TICKS else 2)]
    return {
        "type": "log",
        "tickmode": "array",
        "tickangle": 0,
        "tickvals": ticks,
        "ticktext": [f"{tick:,}" for tick in ticks],
    }


def _line(one: PeakLine) -> list[dict[str, Any]]:
    if not one.points:
        return []
    colour = backend_colour(one.backend)
    drawn = line(
        [tidy(x) or 0.0 for x, _ in one.points],
        [peak / GB for _, peak in one.points],
        one.name,
        colour,
        WIDTHS.get(one.backend, 2.0),
        mode="lines+markers",
        marker={"color": colour, "size": 7, "symbol": SYMBOLS.get(one.backend, "circle")},
        hovertemplate="%{x}: %{y:.3~g} GB",
    )
    drawn["line"] |= {"dash": "dash" if one.dtype in DASHED else "solid"}
    return [drawn]


def _end(one: PeakLine, height: float, words: Mapping[str, str]) -> list[dict[str, Any]]:
    """A cross where memory ran out: as high as the card, or as all lines where no card is drawn."""
    if one.lost_at is None:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [tidy(one.lost_at)],
            "y": [tidy(height / GB)],
            "name": one.name,
            "marker": {"color": backend_colour(one.backend), "size": 11, "symbol": "x"},
            "showlegend": not one.points,
            "hovertemplate": words["ended"],
        }
    ]


def _card_line(gigabytes: float, label: str) -> dict[str, Any]:
    dotted = {"color": "var(--ink-2)", "width": 1.5, "dash": "dot"}
    ends = {"xref": "paper", "x0": 0, "x1": 1, "y0": gigabytes, "y1": gigabytes}
    note = {
        "xref": "paper", "x": 0, "y": gigabytes, "xanchor": "left", "yanchor": "bottom", "showarrow": False,
        "text": label.format(size=f"{gigabytes:.3g} GB"),
    }  # fmt: skip
    return {"shapes": [{"type": "line", "line": dotted} | ends], "annotations": [note]}
