"""Figures: plotly accepts them, they are JSON with finite numbers, they name their run, and their data is not altered."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pandas as pd
import plotly.graph_objects as go
import pytest

from grpo_studio import plots
from grpo_studio.ui import strings

WORDS = strings.load()["live"]["traces"]
NAMES = strings.load()["live"]["phases"]
STEPS = pd.Index([1, 2, 3], name="step")


def _frame(**columns: list[float | None]) -> pd.DataFrame:
    return pd.DataFrame(
        {name.replace("__", "/"): pd.Series(values, index=STEPS, dtype=float) for name, values in columns.items()},
        index=STEPS,
    )


FRAME = _frame(
    reward__mean=[0.1, 0.2, math.nan], reward__std=[0.1, 0.1, math.nan], reward__m__mean=[0.1, 0.2, 0.3],
    group__mixed=[1, 0.5, 0.5], group__all_good=[0, 0.5, 0.25], group__all_bad=[0, 0, 0.25],
    completion__length_mean=[9, 8, 7], completion__truncated=[0.5, 0.25, 0],
    policy__kl=[0, 0.01, 0.02], policy__entropy=[1, 0.9, 0.8], policy__clip_low=[0, 0, 0.01], policy__clip_high=[0, 0, 0],
    policy__sampler_difference=[0.03, 0.04, 0.05], policy__canary_difference=[0.02, None, 0.03],
    optim__loss=[0, 0.1, -0.1], optim__grad_norm=[1, 2, math.inf],
)  # fmt: skip
EVALUATIONS = pd.DataFrame({"step": [0, 3], "eval/reward": [0.1, 0.4]})
ADVANTAGES = pd.DataFrame({"step": [1, 1, 2, 2], "advantage": [-1.2, 1.2, 0.0, 0.0]})
PHASES = _frame(loss=[1, 2, 1], rollout=[3, 3, None], custom=[0.1, 0.1, 0.1])
MEMORY = pd.DataFrame(
    {
        "ts": [0.0, 60.0],
        "step": [1, 1],
        "phase": ["rollout", "loss"],
        "allocated": [math.nan] * 2,
        "reserved": [math.nan] * 2,
        "rss": [1e9, 2e9],
    }
)

FIGURES: dict[str, Callable[[], plots.Figure]] = {
    "reward": lambda: plots.reward_figure(FRAME, EVALUATIONS, [("m", 2.0)], "run-1", WORDS),
    "mix": lambda: plots.group_mix_figure(FRAME, "run-1", WORDS),
    "advantage": lambda: plots.advantage_figure(ADVANTAGES, "run-1", WORDS),
    "length": lambda: plots.length_figure(FRAME, "run-1", WORDS),
    "kl": lambda: plots.kl_figure(FRAME, "run-1", WORDS),
    "loss": lambda: plots.loss_figure(FRAME, "run-1", WORDS),
    "clip": lambda: plots.clip_figure(FRAME, "run-1", WORDS),
    "sampler": lambda: plots.sampler_figure(FRAME, "run-1", WORDS),
    "time": lambda: plots.time_figure(PHASES, "run-1", NAMES),
    "memory": lambda: plots.memory_figure(MEMORY, "run-1", WORDS, NAMES),
}


@pytest.mark.parametrize("name", FIGURES)
def test_plotly_accepts_the_figure_and_json_the_numbers(name: str) -> None:
    figure = FIGURES[name]()
    go.Figure(figure)
    json.dumps(figure, allow_nan=False)
    assert figure["layout"]["uirevision"] == "run-1"
    assert figure["data"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.reward_figure(FRAME.iloc[:0], pd.DataFrame(columns=["step"]), [("m", 1.0)], "r", WORDS),
        lambda: plots.advantage_figure(ADVANTAGES.iloc[:0], "r", WORDS),
        lambda: plots.memory_figure(MEMORY.iloc[:0], "r", WORDS, NAMES),
        lambda: plots.kl_figure(FRAME.iloc[:0], "r", WORDS),
        lambda: plots.time_figure(PHASES.iloc[:0], "r", NAMES),
    ],
)
def test_an_empty_frame_gives_a_figure_without_points(draw: Callable[[], plots.Figure]) -> None:
    figure = draw()
    go.Figure(figure)
    assert not any(trace.get("y") for trace in figure["data"] if trace["type"] != "heatmap")


def test_a_verifiers_line_is_its_weighted_mean() -> None:
    traces = {trace["name"]: trace for trace in FIGURES["reward"]()["data"]}
    assert traces["m × 2"]["y"] == [0.2, 0.4, 0.6]
    assert traces["reward"]["y"] == [0.1, 0.2, None]
    assert traces["held-out"]["x"] == [0, 3]


def test_the_band_is_the_mean_with_its_spread() -> None:
    low, high = FIGURES["reward"]()["data"][:2]
    assert low["y"][:2] == [0.0, 0.1]
    assert high["y"][:2] == [0.2, 0.3]
    assert high["fill"] == "tonexty"


def test_without_a_reference_model_only_the_entropy_is_drawn() -> None:
    frame = FRAME.assign(**{"policy/kl": math.nan})
    assert [trace["name"] for trace in plots.kl_figure(frame, "r", WORDS)["data"]] == ["entropy"]


def test_each_column_of_the_advantage_map_sums_to_one() -> None:
    heat = FIGURES["advantage"]()["data"][0]
    for column in zip(*heat["z"], strict=True):
        assert sum(column) == pytest.approx(1, abs=0.01)
