"""What the Live page shows of a run's metrics: tiles, facts and figures. Plain values, ready for JSON."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from typing import Any

import pandas as pd

from grpo_studio import plots, queries
from grpo_studio.plots.figure import phase_colour, phase_order, tidy, verifier_colour
from grpo_studio.store.reader import RunReader
from grpo_studio.ui import strings
from grpo_studio.ui.live_run import LiveRun, memo_of

SPARK_POINTS = 60
RECENT_STEPS = 10
CORE_METRICS = (
    "reward/mean", "reward/std", "group/mixed", "group/all_good", "group/all_bad", "completion/length_mean",
    "completion/truncated", "policy/kl", "policy/entropy", "policy/clip_low", "policy/clip_high", "optim/loss",
    "optim/grad_norm", "time/step", "throughput/completion_tokens_per_s", "policy/completions",
    "policy/sampler_difference", "policy/canary_difference",
)  # fmt: skip
PEAK = "memory/peak/"
OTHERS = "memory/others"
TILES = {
    "reward": "reward/mean",
    "mixed": "group/mixed",
    "truncated": "completion/truncated",
    "kl": "policy/kl",
    "step": "time/step",
}

TROUBLES = ("timeout", "error", "wrong_type", "non_finite")
"""Kinds of a verifier's trouble that are counted beside its abstentions."""

Answer = dict[str, Any]


def charts(run: LiveRun, reader: RunReader, shown: queries.Steps) -> Answer:
    """Everything that follows from the metrics: tiles, facts, and all figures over steps."""
    peaks = queries.metric_names(reader, f"{PEAK}*")
    frame = queries.metrics(reader, [*CORE_METRICS, *(_reward(name) for name, _ in run.rewards), *peaks], shown)
    evaluations = queries.evaluations(reader)
    phases = queries.phase_times(reader, shown)
    memo = memo_of(run.folder.database)
    with memo.lock:
        counts = [_count(name, kind) for name, _ in run.rewards for kind in ("abstained", *TROUBLES)]
        memo.totals.look(reader, [*peaks, *counts])
        facts = {
            "held_out": _held_out(evaluations),
            "verifiers": _verifiers(run, reader, shown, memo.totals),
            "groups": memo.totals.groups,
            "completions": memo.totals.completions,
        }
        highest = {name: memo.totals.peaks[name] for name in peaks if name in memo.totals.peaks}
    return {
        "tiles": _tiles(run, reader, frame, phases, highest),
        "tokens_per_s": tidy(_last(frame["throughput/completion_tokens_per_s"]), 3),
        "facts": facts,
        "updated": {
            "kept": tidy(_last(frame["policy/completions"])),
            "of": run.config.algorithm.prompts_per_step * run.config.algorithm.group_size,
        },
        "figures": _figures(run, reader, frame, evaluations, phases),
    }


def memory_chart(run: LiveRun, reader: RunReader) -> plots.Figure:
    """The memory over time."""
    memo = memo_of(run.folder.database)
    with memo.lock:
        frame = memo.memory.frame(reader)
    size, words = queries.watched(reader).size, _words()
    others = _of_others(reader, frame)
    return plots.memory_figure(frame, run.folder.run_id, words["traces"], words["phases"], size, others)


def memory_facts(run: LiveRun, reader: RunReader) -> Answer:
    """What stands below that chart: the peaks of each device by phase, and where a snapshot was saved."""
    memo = memo_of(run.folder.database)
    with memo.lock:
        peaks = memo.memory_peaks.look(reader)
    names = _words()["phases"]
    snapshot = queries.memory_snapshot(reader)
    path = None if snapshot is None else run.folder.path / snapshot
    return {
        "peaks": [
            asdict(peak) | {"name": names.get(peak.phase, peak.phase), "colour": phase_colour(peak.phase)}
            for peak in sorted(peaks, key=lambda peak: (peak.device, phase_order(peak.phase)))
        ],
        "snapshot": str(path) if path is not None and path.is_file() else None,
    }


def _of_others(reader: RunReader, frame: pd.DataFrame) -> pd.Series[Any] | None:
    """Bytes that other processes hold, for the steps of these samples; None where nobody could be asked."""
    if frame.empty or not queries.metric_names(reader, OTHERS):
        return None
    steps = sorted({int(step) for step in frame["step"]})
    return queries.metrics(reader, [OTHERS], queries.Steps(steps[0], steps[-1], tuple(steps)))[OTHERS]


def _reward(name: str) -> str:
    return f"reward/{name}/mean"


def _count(name: str, kind: str) -> str:
    return f"verifier/{name}/{kind}"


def _tiles(
    run: LiveRun, reader: RunReader, frame: pd.DataFrame, phases: pd.DataFrame, highest: dict[str, float]
) -> Answer:
    peaks = frame[[name for name in frame if str(name).startswith(PEAK)]]
    peak = peaks.max(axis=1) if len(peaks.columns) else pd.Series(float("nan"), index=frame.index)
    shares = phases.iloc[-1] / phases.iloc[-1].sum() if len(phases) and len(phases.columns) else pd.Series(dtype=float)
    names = _words()["phases"]
    tiles: Answer = {key: _tile(frame[column], *queries.ends(reader, column)) for key, column in TILES.items()}
    tiles["memory"] = _tile(peak, None, None)
    tiles["mixed"] |= _dead_groups(run, reader)
    tiles["kl"] |= {"no_reference": run.config.algorithm.beta == 0}
    longest = shares.dropna()
    if len(longest):
        phase = str(longest.idxmax())
        tiles["step"] |= {"phase": names.get(phase, phase), "share": tidy(longest.max(), 3)}
    if highest:
        phase = max(highest, key=lambda name: highest[name])
        key = phase.removeprefix(PEAK)
        tiles["memory"] |= {"value": tidy(highest[phase]), "phase": names.get(key, key)}
    return tiles


def _tile(values: pd.Series[Any], first: float | None, newest: float | None) -> Answer:
    """The line of the drawn steps; `first` and `newest` are read from the run itself."""
    known = values.dropna()
    stride = max(1, -(-len(known) // SPARK_POINTS))
    spark = [tidy(value, 4) for value in known.iloc[::-1].iloc[::stride].iloc[::-1]]
    return {"value": tidy(newest), "first": tidy(first), "spark": spark}


def _dead_groups(run: LiveRun, reader: RunReader) -> Answer:
    """How many groups of the newest batch are dead: of the same step as the tile's share of mixed ones."""
    groups = run.config.algorithm.prompts_per_step
    good, bad = (queries.ends(reader, f"group/{kind}")[1] for kind in ("all_good", "all_bad"))
    if good is None or bad is None:
        return {"groups": groups, "dead": None, "good": None}
    return {"groups": groups, "dead": round((good + bad) * groups), "good": round(good * groups)}


def _last(values: pd.Series[Any]) -> float | None:
    known = values.dropna()
    return float(known.iloc[-1]) if len(known) else None


def _held_out(evaluations: pd.DataFrame) -> list[Answer]:
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
    return held_out


def _verifiers(run: LiveRun, reader: RunReader, shown: queries.Steps, totals: queries.Totals) -> list[Answer]:
    """What each verifier adds: its mean over the run's last steps themselves, not over those that are drawn."""
    recent = queries.metrics(
        reader, [_reward(name) for name, _ in run.rewards], queries.last_steps(shown, RECENT_STEPS)
    )
    verifiers = []
    for place, (name, weight) in enumerate(run.rewards):
        known = recent[_reward(name)].dropna()
        mean = statistics.fmean(known) if len(known) else None
        verifiers.append(
            {
                "name": name,
                "weight": weight,
                "colour": verifier_colour(place),
                "mean": tidy(mean),
                "adds": None if mean is None else tidy(mean * weight),
                "abstained": tidy(totals.sums.get(_count(name, "abstained"))),
                "troubles": {kind: tidy(found) for kind in TROUBLES if (found := totals.sums.get(_count(name, kind)))},
            }
        )
    return verifiers


def _figures(
    run: LiveRun, reader: RunReader, frame: pd.DataFrame, evaluations: pd.DataFrame, phases: pd.DataFrame
) -> Answer:
    run_id, words = run.folder.run_id, _words()["traces"]
    sampler = {"sampler": plots.sampler_figure(frame, run_id, words)} if run.config.uses_vllm else {}
    return sampler | {
        "reward": plots.with_attempts(
            plots.reward_figure(frame, evaluations, run.rewards, run_id, words),
            [(began.attempt, began.from_step) for began in reader.attempts()],
            words["attempt"],
        ),
        "mix": plots.group_mix_figure(frame, run_id, words),
        "advantage": plots.advantage_figure(queries.advantages(reader), run_id, words),
        "length": plots.length_figure(frame, run_id, words),
        "kl": plots.kl_figure(frame, run_id, words),
        "loss": plots.loss_figure(frame, run_id, words),
        "clip": plots.clip_figure(frame, run_id, words),
        "time": plots.time_figure(phases, run_id, _words()["phases"]),
    }


def _words() -> dict[str, Any]:
    words: dict[str, Any] = strings.load()["live"]
    return words
