"""The memory chart: one group of traces a device, bands where every sample is shown, points where they are merged."""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest

from grpo_studio import plots
from grpo_studio.ui import strings

WORDS = strings.load()["live"]["traces"]
NAMES = strings.load()["live"]["phases"]


def samples(*rows: tuple[float, str, float], device: str = "cpu", **columns: Any) -> pd.DataFrame:
    """Rows of (seconds, phase, gigabytes): resident on a CPU, allocated on a card; every one is shown."""
    frame = pd.DataFrame(
        {
            "ts": [1000 + row[0] for row in rows],
            "step": 1,
            "phase": [row[1] for row in rows],
            "allocated": [math.nan if device == "cpu" else row[2] * 1e9 for row in rows],
            "reserved": math.nan,
            "rss": [row[2] * 1e9 for row in rows],
            "device": device,
            "attempt": 1,
            "exact": True,
        }
    )
    return frame.assign(**columns)


def drawn(frame: pd.DataFrame, size: int = 0, others: pd.Series[Any] | None = None) -> dict[str, Any]:
    figure = plots.memory_figure(frame, "run-1", WORDS, NAMES, size, others)
    go.Figure(figure)
    json.dumps(figure, allow_nan=False)
    return figure


def bands(figure: dict[str, Any]) -> dict[str, list[float | None]]:
    return {trace["name"]: trace["x"] for trace in figure["data"] if trace.get("fill") == "toself"}


def minutes(figure: dict[str, Any]) -> list[float]:
    return next(trace["x"] for trace in figure["data"] if (trace.get("meta") or {}).get("main"))


@pytest.mark.parametrize("after", [-3600.0, 1e9, 1e308])
def test_a_clock_that_is_set_moves_nothing_out_of_the_chart(after: float) -> None:
    found = drawn(samples((0, "loss", 1.0), (60, "loss", 1.0), (after, "loss", 1.0), (after + 60, "loss", 1.0)))
    assert minutes(found) == [0.0, 1.0, 1.0, 1.0 if after > 1e300 else 2.0]
    assert found["layout"]["xaxis"]["range"] == [0, max(minutes(found))]


STEP = ((0, "other", 1.0), (6, "rollout", 2.0), (12, "rollout", 2.0), (15, "loss", 3.0), (18, "other", 1.0))


def test_a_band_reaches_from_the_sample_before_to_the_last_of_its_phase() -> None:
    assert bands(drawn(samples(*STEP))) == {
        "rollout": [0.0, 0.0, 0.2, 0.2, None],
        "loss": [0.2, 0.2, 0.25, 0.25, None],
    }


@pytest.mark.parametrize(
    "rows",
    [
        ((0, "loss", 1.0),),
        ((0, "loss", 1.0), (0, "loss", 2.0)),
        ((6, "loss", 1.0), (0, "loss", 2.0)),
        ((0, "other", 1.0), (6, "other", 1.0)),
    ],
    ids=["one sample", "no time between", "a clock that was set back", "no named phase"],
)
def test_where_no_time_of_a_phase_is_known_there_is_no_band(rows: tuple[tuple[float, str, float], ...]) -> None:
    figure = drawn(samples(*rows))
    assert bands(figure) == {}
    assert figure["data"]


def test_bands_fill_the_chart_that_shows_the_card_too() -> None:
    figure = drawn(samples(*STEP, device="cuda:0"), size=6 * 10**9)
    [low, high] = figure["layout"]["yaxis"]["range"]
    assert low == 0
    assert high > 6
    assert max(y for trace in figure["data"] if trace.get("fill") for y in trace["y"] if y is not None) == high
    assert [shape["y0"] for shape in figure["layout"]["shapes"]] == [3.0, 6.0]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["peak 3 GB", "card 6 GB"]


def test_a_card_far_above_is_named_and_does_not_flatten_the_chart() -> None:
    figure = drawn(samples(*STEP), size=80 * 10**9)
    assert figure["layout"]["yaxis"]["range"][1] < 4
    assert [shape["y0"] for shape in figure["layout"]["shapes"]] == [3.0]
    assert figure["layout"]["annotations"][1]["text"] == "machine 80 GB ↑"


def test_merged_samples_are_points_by_phase_and_have_no_bands() -> None:
    figure = drawn(samples(*STEP, exact=False))
    points = {trace["name"]: trace["y"] for trace in figure["data"] if trace["mode"] == "markers"}
    assert points == {"other": [1.0, 1.0], "rollout": [2.0, 2.0], "loss": [3.0]}
    assert bands(figure) == {}
    assert figure["layout"]["meta"] == {"devices": ["cpu"], "newest": None, "whole": False}


def test_the_newest_part_has_bands_and_is_named_for_a_zoom() -> None:
    figure = drawn(samples(*STEP, exact=[False, False, True, True, True]))
    assert bands(figure) == {"loss": [0.2, 0.2, 0.25, 0.25, None]}
    assert figure["layout"]["meta"]["newest"] == [0.2, 0.3]
    legend = [trace["name"] for trace in figure["data"] if trace.get("showlegend", True)]
    assert len(legend) == len(set(legend))


@pytest.mark.parametrize(
    ("frame", "names"),
    [
        (samples(*STEP), ["resident"]),
        (samples(*STEP, allocated=1e9), ["resident", "tensors"]),
        (samples(*STEP, device="cuda:0"), ["resident", "allocated"]),
        (samples(*STEP, device="cuda:0", reserved=4e9), ["reserved", "resident", "allocated"]),
    ],
    ids=["cpu", "cpu with tensors", "gpu", "gpu with reserve"],
)
def test_every_count_that_there_is_has_a_line(frame: pd.DataFrame, names: list[str]) -> None:
    assert [trace["name"] for trace in drawn(frame)["data"] if not trace.get("fill")] == names


def test_each_device_has_its_own_traces_and_colour() -> None:
    two = pd.concat([samples(*STEP, device="cuda:0"), samples(*STEP, device="cuda:1", allocated=9e9)])
    figure = drawn(two.sort_values("ts", kind="stable").reset_index(drop=True))
    mains = {trace["meta"]["device"]: trace for trace in figure["data"] if trace["meta"].get("main")}
    assert set(mains["cuda:1"]["y"]) == {9.0}
    assert mains["cuda:0"]["y"] == [1.0, 2.0, 2.0, 3.0, 1.0]
    assert mains["cuda:0"]["meta"]["colour"] != mains["cuda:1"]["meta"]["colour"]
    assert {trace["meta"]["device"] for trace in figure["data"]} == {"cuda:0", "cuda:1"}
    assert figure["layout"]["meta"]["devices"] == ["cuda:0", "cuda:1"]


def test_what_others_hold_is_a_line_with_one_point_a_step() -> None:
    frame = samples(*STEP, device="cuda:0", step=[1, 1, 2, 2, 3])
    figure = drawn(frame, others=pd.Series({1: 5e9, 3: 7e9}))
    [others] = [trace for trace in figure["data"] if trace["name"] == "other processes"]
    assert others["y"] == [5.0, 7.0]
    assert figure["layout"]["yaxis"]["range"][1] > 7
    assert "other processes" not in [trace["name"] for trace in drawn(frame, others=pd.Series({9: 1e9}))["data"]]


def test_the_hours_before_a_resume_are_cut_short_and_marked() -> None:
    frame = samples(*STEP)
    later = frame.assign(ts=frame["ts"] + 36_000, attempt=2)
    figure = drawn(pd.concat([frame, later], ignore_index=True))
    assert figure["data"][-1]["x"][-1] < 1
    assert figure["layout"]["annotations"][-1]["text"] == "attempt 2"
    assert all(figure["layout"]["shapes"][-1][name] == pytest.approx(23 / 60, abs=1e-3) for name in ("x0", "x1"))
    assert 23 / 60 not in [x for xs in bands(figure).values() for x in xs]


def test_names_out_of_a_foreign_database_are_text() -> None:
    figure = drawn(samples((0, "<b>x</b>", 1.0), (6, "<b>x</b>", 1.0)))
    assert "<b>" not in json.dumps([trace.get("customdata") for trace in figure["data"]])


def test_a_frame_without_devices_is_drawn_too() -> None:
    frame = samples(*STEP).drop(columns=["device", "attempt", "exact"])
    assert next(trace["name"] for trace in drawn(frame)["data"]) == "resident"


def test_samples_without_a_number_leave_an_empty_chart() -> None:
    figure = drawn(samples(*STEP, rss=math.nan))
    assert all(value is None for trace in figure["data"] for value in trace["y"] if not trace.get("fill"))
    assert figure["layout"]["annotations"] == []
