"""What the Live page shows of one run, composed from queries and plots. Plain values, ready for JSON."""

from __future__ import annotations

import re
import statistics
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from grpo_studio import plots, queries
from grpo_studio.config import RunConfig
from grpo_studio.group_kind import GroupKind, kind_of_group
from grpo_studio.plots.figure import tidy, verifier_colour
from grpo_studio.run_state import RunState
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import Event, RunReader
from grpo_studio.ui import strings

RUN_NAME = re.compile(r"\d{8}-\d{6}-(?P<slug>.+)-[0-9a-f]{4}")
SPARK_POINTS = 60
CORE_METRICS = (
    "reward/mean", "reward/std", "group/mixed", "group/all_good", "group/all_bad", "completion/length_mean",
    "completion/truncated", "policy/kl", "policy/entropy", "policy/clip_low", "policy/clip_high", "optim/loss",
    "optim/grad_norm", "time/step", "throughput/completion_tokens_per_s",
)  # fmt: skip

Answer = dict[str, Any]


@lru_cache(maxsize=256)
def config_of(path: Path) -> RunConfig:
    """A run's settings, read once: config.yaml never changes."""
    return RunFolder(path).config()


@dataclass(frozen=True)
class LiveRun:
    """A run as the page needs it: its folder, its settings, its state at this moment."""

    folder: RunFolder
    config: RunConfig
    state: RunState

    @property
    def name(self) -> str:
        return run_name(self.folder.run_id)

    @property
    def rewards(self) -> list[tuple[str, float]]:
        return [(reward.label, reward.weight) for reward in self.config.rewards]

    @property
    def reachable(self) -> float:
        """The greatest reward that the weights allow, for verifiers that score from 0 to 1."""
        return sum(max(weight, 0.0) for _, weight in self.rewards)


def run_name(run_id: str) -> str:
    """The name that a person gave, out of the id."""
    match = RUN_NAME.fullmatch(run_id)
    return match["slug"] if match else run_id


def about(run: LiveRun) -> Answer:
    """What never changes in a run: sent once."""
    config = run.config
    verifiers = [
        {"name": name, "weight": weight, "colour": verifier_colour(place)}
        for place, (name, weight) in enumerate(run.rewards)
    ]
    return {
        "id": run.folder.run_id,
        "name": run.name,
        "steps": config.algorithm.steps,
        "group_size": config.algorithm.group_size,
        "prompts_per_step": config.algorithm.prompts_per_step,
        "longest": config.algorithm.max_completion_length,
        "verifiers": verifiers,
        "reachable": run.reachable,
        "lowest": sum(min(weight, 0.0) for _, weight in run.rewards),
        "facts": {
            "model": config.model.id,
            "data": config.dataset.source,
            "loss": config.algorithm.loss_type,
            "learning_rate": config.algorithm.learning_rate,
            "beta": config.algorithm.beta,
            "size": f"{config.algorithm.prompts_per_step} \u00d7 {config.algorithm.group_size}",
        },
    }


def strip(run: LiveRun, reader: RunReader, shown: queries.Steps) -> Answer:
    """The line at the top: state, progress, time left."""
    total, done = run.config.algorithm.steps, shown.last
    pace = queries.step_seconds(reader) if run.state.state == "running" else None
    return {
        "state": run.state.state,
        "reason": run.state.reason,
        "ended": run.state.ended,
        "step": done,
        "steps": total,
        "seconds_left": None if pace is None else tidy(pace * max(0, total - done)),
    }


def charts(run: LiveRun, reader: RunReader, shown: queries.Steps) -> Answer:
    """Everything that follows from the metrics: tiles, facts, and all figures over steps."""
    names = [
        *CORE_METRICS,
        *(f"reward/{name}/mean" for name, _ in run.rewards),
        *queries.metric_names(reader, "memory/peak/*"),
    ]
    frame = queries.metrics(reader, names, shown)
    evaluations = queries.evaluations(reader)
    phases = queries.phase_times(reader, shown)
    return {
        "tiles": _tiles(run, frame, phases),
        "tokens_per_s": tidy(_last(frame["throughput/completion_tokens_per_s"]), 3),
        "facts": _facts(run, reader, frame, evaluations),
        "figures": _figures(run, reader, frame, evaluations, phases),
    }


def memory_chart(run: LiveRun, reader: RunReader) -> plots.Figure:
    return plots.memory_figure(queries.memory(reader), run.folder.run_id, _words())


def map_of_groups(run: LiveRun, reader: RunReader) -> Answer:
    """The mini-map: for each drawn step the mean reward of each group, None for a dead one's colour."""
    frame = queries.minimap(reader)
    first, last = queries.group_range(reader)
    cells: dict[int, list[Any]] = {}
    for step, mean, spread in zip(
        frame["step"].tolist(), frame["mean"].tolist(), frame["spread"].tolist(), strict=True
    ):
        cells.setdefault(int(step), []).append([tidy(mean, 3), kind_of(mean, spread, run.reachable)])
    columns = [{"step": step, "cells": column} for step, column in cells.items()]
    means = frame["mean"].dropna()
    low = min([0.0, *([float(means.min())] if len(means) else [])])
    high = max([run.reachable, *([float(means.max())] if len(means) else [])]) or 1.0
    return {"first": first, "last": last, "columns": columns, "scale": [tidy(low), tidy(high)]}


def strips_of_step(run: LiveRun, reader: RunReader, step: int) -> Answer:
    """The groups of a step (or of the nearest one before it): squares ordered by advantage."""
    found = queries.nearest_group_step(reader, step)
    if found is None:
        return {"step": None, "groups": []}
    frame = queries.groups_of_step(reader, found)
    groups = []
    for group_id, part in frame.groupby("group", sort=True):
        top = part.iloc[0]
        rewards = [tidy(value, 4) for value in part["reward"].head(queries.STRIP_SQUARES)]
        groups.append(
            {
                "id": int(str(group_id)),
                "prompt": str(top["prompt"]),
                "mean": tidy(top["mean"], 4),
                "spread": tidy(top["spread"], 4),
                "kind": kind_of(top["mean"], top["spread"], run.reachable),
                "rewards": rewards,
                "hidden": max(0, len(part) - len(rewards)),
            }
        )
    return {"step": found, "groups": groups}


def group_detail(run: LiveRun, reader: RunReader, group_id: int) -> Answer | None:
    """One group for the inspector; None when it does not exist."""
    group = queries.group(reader, group_id)
    if group is None:
        return None
    frame = queries.completions(reader, group_id)
    scores = queries.scores(reader, [int(number) for number in frame["id"]])
    by_completion = {int(str(key)): part for key, part in scores.groupby("completion")}
    items = [_completion(run, row, by_completion.get(int(str(row.id)))) for row in frame.itertuples()]
    kind = kind_of(group["mean"], group["spread"], run.reachable)
    figures = {"mean": tidy(group["mean"], 4), "spread": tidy(group["spread"], 4), "kind": kind}
    return {**group, **figures, "seen": queries.seen_at(reader, group_id), "completions": items}


def events(found: list[Event]) -> list[Answer]:
    return [{key: value for key, value in asdict(event).items() if key not in ("data", "attempt")} for event in found]


def kind_of(mean: Any, spread: Any, reachable: float) -> GroupKind:
    """The kind of a group from cells of a frame, where NaN means that there is no value."""
    return kind_of_group(tidy(mean), tidy(spread), reachable)


def _completion(run: LiveRun, row: Any, scores: pd.DataFrame | None) -> Answer:
    order = {name: place for place, (name, _) in enumerate(run.rewards)}
    judged = [] if scores is None else sorted(scores.itertuples(), key=lambda score: order.get(str(score.verifier), 99))
    return {
        "id": int(row.id),
        "text": str(row.text),
        "length": int(row.length),
        "tokens": int(row.tokens),
        "truncated": bool(row.truncated),
        "reward": tidy(row.reward, 4),
        "advantage": tidy(row.advantage, 4),
        "scores": [
            {
                "verifier": str(score.verifier),
                "colour": verifier_colour(order.get(str(score.verifier), len(order))),
                "value": tidy(score.value, 4),
                "weight": tidy(score.weight, 4),
                "reason": score.reason or "",
                "extracted": score.extracted,
                "outcome": score.outcome,
            }
            for score in judged
        ],
    }


def _tiles(run: LiveRun, frame: pd.DataFrame, phases: pd.DataFrame) -> Answer:
    peaks = frame[[name for name in frame if str(name).startswith("memory/peak/")]]
    peak = peaks.max(axis=1) if len(peaks.columns) else pd.Series(float("nan"), index=frame.index)
    shares = phases.iloc[-1] / phases.iloc[-1].sum() if len(phases) and len(phases.columns) else pd.Series(dtype=float)
    columns = {
        "reward": "reward/mean",
        "mixed": "group/mixed",
        "truncated": "completion/truncated",
        "kl": "policy/kl",
        "step": "time/step",
    }
    tiles = {key: _tile(frame[column]) for key, column in columns.items()} | {"memory": _tile(peak)}
    groups = run.config.algorithm.prompts_per_step
    tiles["mixed"] |= {
        "groups": groups,
        "dead": _times(frame, groups, "group/all_good", "group/all_bad"),
        "good": _times(frame, groups, "group/all_good"),
    }
    tiles["kl"] |= {"no_reference": run.config.algorithm.beta == 0}
    longest = shares.dropna()
    tiles["step"] |= {"phase": str(longest.idxmax()), "share": tidy(longest.max(), 3)} if len(longest) else {}
    if len(peaks.columns) and peaks.notna().to_numpy().any():
        tiles["memory"] |= {"value": tidy(peaks.max().max()), "phase": str(peaks.max().idxmax()).rpartition("/")[2]}
    return tiles


def _tile(values: pd.Series[Any]) -> Answer:
    known = values.dropna()
    stride = max(1, -(-len(known) // SPARK_POINTS))
    spark = [tidy(value, 4) for value in known.iloc[::-1].iloc[::stride].iloc[::-1]]
    return {
        "value": tidy(known.iloc[-1]) if len(known) else None,
        "first": tidy(known.iloc[0]) if len(known) else None,
        "spark": spark,
    }


def _times(frame: pd.DataFrame, groups: int, *columns: str) -> int | None:
    values = [_last(frame[column]) for column in columns]
    return None if any(value is None for value in values) else round(sum(value or 0.0 for value in values) * groups)


def _last(values: pd.Series[Any]) -> float | None:
    known = values.dropna()
    return float(known.iloc[-1]) if len(known) else None


def _facts(run: LiveRun, reader: RunReader, frame: pd.DataFrame, evaluations: pd.DataFrame) -> Answer:
    held_out = []
    for column in [str(name) for name in evaluations if name == "eval/reward" or str(name).endswith("/mean")]:
        known = evaluations.dropna(subset=[column])
        if len(known):
            first, last = known.iloc[0], known.iloc[-1]
            name = column.removeprefix("eval/").removesuffix("/mean")
            ends = {
                "before": tidy(first[column]),
                "now": tidy(last[column]),
                "from_step": int(first["step"]),
                "at_step": int(last["step"]),
            }
            held_out.append({"name": name, "only": len(known) == 1, **ends})
    verifiers = []
    for place, (name, weight) in enumerate(run.rewards):
        recent = frame[f"reward/{name}/mean"].dropna().tail(10)
        mean = statistics.fmean(recent) if len(recent) else None
        adds = None if mean is None else tidy(mean * weight)
        abstained = queries.abstentions(reader, name)
        verifiers.append(
            {
                "name": name,
                "weight": weight,
                "colour": verifier_colour(place),
                "mean": tidy(mean),
                "adds": adds,
                "abstained": tidy(abstained),
            }
        )
    groups, completions = reader.counts()
    return {"held_out": held_out, "verifiers": verifiers, "groups": groups, "completions": completions}


def _figures(
    run: LiveRun, reader: RunReader, frame: pd.DataFrame, evaluations: pd.DataFrame, phases: pd.DataFrame
) -> Answer:
    run_id, words = run.folder.run_id, _words()
    return {
        "reward": plots.reward_figure(frame, evaluations, run.rewards, run_id, words),
        "mix": plots.group_mix_figure(frame, run_id, words),
        "advantage": plots.advantage_figure(queries.advantages(reader), run_id, words),
        "length": plots.length_figure(frame, run_id, words),
        "kl": plots.kl_figure(frame, run_id, words),
        "loss": plots.loss_figure(frame, run_id, words),
        "clip": plots.clip_figure(frame, run_id, words),
        "time": plots.time_figure(phases, run_id),
    }


def _words() -> dict[str, str]:
    words: dict[str, str] = strings.load()["live"]["traces"]
    return words
