"""What the Live page shows of one run but for its charts: facts, progress, groups, events. Plain values for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pandas as pd

from grpo_studio import queries
from grpo_studio.absent_metrics import absent_metrics
from grpo_studio.config import RunConfig
from grpo_studio.group_kind import GroupKind, kind_of_group
from grpo_studio.plots.figure import tidy, verifier_colour
from grpo_studio.store.reader import Event, RunReader
from grpo_studio.ui import strings
from grpo_studio.ui.live_money import money
from grpo_studio.ui.live_run import LiveRun, lost_records
from grpo_studio.ui.run_menu import actions_of, help_of, parent_of

Answer = dict[str, Any]


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
        "lowest": run.lowest,
        "vllm": config.uses_vllm,
        "absent": absent_metrics(config),
        "parent": parent_of(run.folder),
        "facts": {
            "model": config.model.id,
            "data": config.dataset.source,
            "loss": f"{config.algorithm.loss_type} \u00b7 {config.memory.loss_backend}",
            "trains": _trained(config),
            "rollouts": config.rollout.engine,
            "learning_rate": config.algorithm.learning_rate,
            "beta": config.algorithm.beta,
            "size": f"{config.algorithm.prompts_per_step} \u00d7 {config.algorithm.group_size}",
        },
    }


def _trained(config: RunConfig) -> str:
    if config.memory.adapter == "none":
        return str(strings.load()["live"]["all_weights"])
    return f"{config.memory.adapter}, rank {config.memory.lora_rank}"


def strip(run: LiveRun, reader: RunReader, shown: queries.Steps) -> Answer:
    """The line at the top: state, progress, time left."""
    began, actions = reader.newest_attempt(), actions_of(run.folder, run.state, run.waits)
    total, done = run.config.algorithm.steps, max(shown.last, began.from_step)
    pace = queries.step_seconds(reader) if run.state.state == "running" else None
    return {
        "attempt": began.attempt,
        "from_step": began.from_step,
        "actions": actions,
        "help": help_of(run.state, actions),
        "lost": lost_records(reader),
        "state": run.state.state,
        "reason": run.state.reason,
        "ended": run.state.ended,
        "step": done,
        "steps": total,
        "seconds_left": None if pace is None else tidy(pace * max(0, total - done)),
        "money": money(run, reader, done, pace),
    }


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
    low = min([run.lowest, *([float(means.min())] if len(means) else [])])
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
    seen = queries.seen_at(reader, group_id)
    return {**group, **figures, "seen": seen.steps, "seen_first": seen.first, "completions": items}


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
