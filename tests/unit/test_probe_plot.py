"""The chart of the published figure: peak against batch, for a probe's sweep and for a forecast."""

from __future__ import annotations

import json
import math
from typing import Any

import plotly.graph_objects as go
import pytest

from grpo_studio.plots.figure import GREY, Figure
from grpo_studio.plots.probe import BACKEND_COLOURS, PeakLine, peak_figure, shows_card

WORDS = {"ended": "out of memory at %{x}", "card": "{size}"}
FULL = PeakLine("full, fp32", "full", "float32", [(1, 8e9), (2, 30e9), (4, 70e9)], lost_at=8)
LIGER = PeakLine("Liger, bf16", "liger", "bfloat16", [(1, 4e9), (2, 4.5e9), (4, 6e9)])


def drawn(*lines: PeakLine, card: float | None = 80e9, key: str = "probe 1") -> Figure:
    return peak_figure(lines, card, key, WORDS)


def crosses(figure: Figure) -> list[dict[str, Any]]:
    return [trace for trace in figure["data"] if trace["mode"] == "markers"]


def test_plotly_accepts_it_and_it_is_json_that_names_what_it_shows() -> None:
    figure = drawn(FULL, LIGER)
    go.Figure(figure)
    json.dumps(figure, allow_nan=False)
    assert figure["layout"]["uirevision"] == "probe 1"


def test_float32_is_solid_and_16_bits_are_dashed_each_backend_in_its_colour() -> None:
    full, _, liger = drawn(FULL, LIGER)["data"]
    assert (full["line"]["dash"], liger["line"]["dash"]) == ("solid", "dash")
    assert (full["line"]["color"], liger["line"]["color"]) == (BACKEND_COLOURS["full"], BACKEND_COLOURS["liger"])
    assert full["marker"]["symbol"] != liger["marker"]["symbol"]
    assert full["y"] == [8, 30, 70]
    assert full["x"] == [1, 2, 4]


def test_a_forecast_has_no_number_format_and_is_solid() -> None:
    assert drawn(PeakLine("full", "full", "", [(1, 1e9)]))["data"][0]["line"]["dash"] == "solid"


def test_an_end_by_memory_is_a_cross_at_the_card_that_the_legend_leaves_out() -> None:
    (cross,) = crosses(drawn(FULL, LIGER))
    assert (cross["x"], cross["y"], cross["marker"]["symbol"]) == ([8], [80], "x")
    assert cross["showlegend"] is False
    assert cross["marker"]["color"] == BACKEND_COLOURS["full"]


def test_without_a_card_the_cross_is_as_high_as_the_lines() -> None:
    (cross,) = crosses(drawn(LIGER, FULL, card=None))
    assert cross["y"] == [70]


def test_the_card_is_a_dotted_line_below_the_top_of_the_chart() -> None:
    layout = drawn(FULL)["layout"]
    (shape,) = layout["shapes"]
    assert (shape["y0"], shape["y1"], shape["line"]["dash"]) == (80, 80, "dot")
    assert layout["annotations"][0]["text"] == "80 GB"
    assert layout["yaxis"]["range"][1] > 80


@pytest.mark.parametrize(("card", "shown"), [(None, False), (70e9, True), (210e9, True), (211e9, False), (20e9, True)])
def test_a_card_far_above_all_lines_would_flatten_them_and_is_left_out(card: float | None, shown: bool) -> None:
    assert shows_card(70e9, card) is shown
    figure = drawn(FULL, card=card)
    assert bool(figure["layout"].get("shapes")) is shown
    assert figure["layout"]["yaxis"]["range"][1] >= 70


def test_nothing_measured_at_all_is_no_chart() -> None:
    assert drawn()["data"] == []
    assert drawn(PeakLine("full, fp32", "full", "float32", [], lost_at=1))["data"] == []


def test_a_line_that_fitted_nowhere_is_its_cross_alone_and_is_in_the_legend() -> None:
    lost, liger = drawn(PeakLine("full, fp32", "full", "float32", [], lost_at=1), LIGER)["data"]
    assert (lost["mode"], lost["x"], lost["showlegend"]) == ("markers", [1], True)
    assert liger["name"] == "Liger, bf16"


def test_an_unknown_backend_is_drawn_grey() -> None:
    assert drawn(PeakLine("<b>x</b>", "<b>x</b>", "float64", [(1, 1e9)]))["data"][0]["line"]["color"] == GREY


@pytest.mark.parametrize("size", [1, 4e5, 3e8, 2.5e12])
def test_sizes_from_bytes_to_terabytes_keep_a_range_above_their_peak(size: float) -> None:
    top = drawn(PeakLine("full", "full", "", [(1, size)]), card=None)["layout"]["yaxis"]["range"][1]
    assert math.isfinite(top)
    assert top > size / 1e9


def test_a_chart_that_goes_far_doubles_its_batch_from_tick_to_tick() -> None:
    near = drawn(PeakLine("full", "full", "", [(1, 1e9), (256, 2e9)]))["layout"]["xaxis"]
    far = drawn(PeakLine("full", "full", "", [(1, 1e9), (512, 2e9)]))["layout"]["xaxis"]
    assert "type" not in near
    assert far["type"] == "log"
    assert far["tickvals"] == [1, 4, 16, 64, 256]
