"""The policy over steps: length, distance to the start and the sampler, loss, clipping. Frames are indexed by step."""

from __future__ import annotations

import pandas as pd

from grpo_studio.plots.figure import BLUE, GREEN, ORANGE, Figure, figure, has_values, line, right_axis

SHARE_AXIS = {"tickformat": ".0%", "rangemode": "tozero", "nticks": 4}
LEAST_SHARE = 0.01


def length_figure(frame: pd.DataFrame, run: str, words: dict[str, str]) -> Figure:
    """Mean tokens of a completion (left) and the share that was cut off (right)."""
    steps = _steps(frame)
    traces = [
        line(steps, frame["completion/length_mean"], words["length"], BLUE),
        line(
            steps, frame["completion/truncated"], words["truncated"], ORANGE, 1.6, yaxis="y2", hovertemplate="%{y:.0%}"
        ),
    ]
    return figure(run, traces, yaxis={"rangemode": "tozero", "nticks": 4}, yaxis2=right_axis(**SHARE_AXIS))


def kl_figure(frame: pd.DataFrame, run: str, words: dict[str, str]) -> Figure:
    """KL to the starting model (left) and entropy of the tokens (right, or left where there is no KL)."""
    steps, traces = _steps(frame), []
    with_kl = has_values(frame["policy/kl"])
    if with_kl:
        traces.append(line(steps, frame["policy/kl"], words["kl"], BLUE))
    if has_values(frame["policy/entropy"]):
        axis = {"yaxis": "y2"} if with_kl else {}
        traces.append(line(steps, frame["policy/entropy"], words["entropy"], ORANGE, 1.6, **axis))
    return figure(
        run, traces, yaxis={"rangemode": "tozero", "nticks": 4}, yaxis2=right_axis(rangemode="tozero", nticks=4)
    )


def loss_figure(frame: pd.DataFrame, run: str, words: dict[str, str]) -> Figure:
    """Policy loss (left) and the gradient's norm before clipping (right)."""
    steps = _steps(frame)
    traces = [
        line(steps, frame["optim/loss"], words["loss"], BLUE),
        line(steps, frame["optim/grad_norm"], words["grad_norm"], GREEN, 1.6, yaxis="y2"),
    ]
    return figure(run, traces, yaxis={"nticks": 4}, yaxis2=right_axis(rangemode="tozero", nticks=4))


def clip_figure(frame: pd.DataFrame, run: str, words: dict[str, str]) -> Figure:
    """Shares of tokens whose ratio was clipped from below and from above."""
    steps = _steps(frame)
    parts = (("policy/clip_low", "clip_low", BLUE), ("policy/clip_high", "clip_high", ORANGE))
    traces = [
        line(steps, frame[name], words[word], colour, 1.6) for name, word, colour in parts if has_values(frame[name])
    ]
    never = not any(value for trace in traces for value in trace["y"])
    axis = {"range": [0, LEAST_SHARE]} if never else {"rangemode": "tozero"}
    return figure(run, traces, yaxis={"tickformat": ".1%", "nticks": 4} | axis)


def sampler_figure(frame: pd.DataFrame, run: str, words: dict[str, str]) -> Figure:
    """How far the rollout engine's log-probs lie from the trainer's: of the sampled tokens, and of the canary's."""
    steps = _steps(frame)
    parts = (("policy/sampler_difference", "sampler", BLUE), ("policy/canary_difference", "canary", ORANGE))
    traces = [
        line(steps, frame[name], words[word], colour, 1.6) for name, word, colour in parts if has_values(frame[name])
    ]
    return figure(run, traces, yaxis={"rangemode": "tozero", "nticks": 4})


def _steps(frame: pd.DataFrame) -> list[int]:
    return [int(step) for step in frame.index]
