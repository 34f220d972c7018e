"""A comparison of two evaluations as JSON and as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from grpo_studio.evaluation_stats import Estimate
from grpo_studio.queries.before_after import OUTCOMES, Change, Comparison
from grpo_studio.queries.evaluated import Evaluation

WORDS = {
    "gained": "wrong before, right after",
    "lost": "right before, wrong after",
    "right": "right both times",
    "wrong": "wrong both times",
    "unjudged": "not judged on both sides",
}


def as_json(found: Comparison) -> dict[str, Any]:
    """All figures of a comparison; an estimate is {"value", "low", "high", "rows", "left_out"}."""
    sampled = found.sampled_reward()
    return {
        "before": about(found.before.evaluation),
        "after": about(found.after.evaluation),
        "rows": len(found.pairs),
        "only_before": found.only_before,
        "only_after": found.only_after,
        "not_read": max(found.before.left, found.after.left),
        "passed_by": found.rule.reward,
        "pass_score": found.rule.score,
        "passed": _change(found.passed()),
        "reward": _change(found.reward()),
        "verifiers": [_change(change) for change in found.verifiers()],
        "samples": list(found.samples()),
        "sampled_reward": None if sampled is None else _change(sampled),
        "pass_at": [{"k": k, **_change(change)} for k, change in found.pass_at()],
        "flips": {outcome: found.count(outcome) for outcome in OUTCOMES},
        "p": found.flips().p,
    }


def about(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "key": evaluation.key,
        "step": evaluation.step,
        "checkpoint": evaluation.checkpoint,
        "at": evaluation.at,
    }


def lines_of(found: Comparison) -> Iterator[str]:
    """The comparison for a terminal: before, after and their difference, each with its 95 % interval."""
    yield f"{named(found.before.evaluation)} -> {named(found.after.evaluation)}, {len(found.pairs):,} rows in both"
    if found.only_before or found.only_after:
        yield f"left out: {found.only_before:,} rows only before, {found.only_after:,} only after"
    yield f"{'':<24} {'before':>24} {'after':>24} {'difference':>26}"
    yield _line("reward", found.reward())
    for change in found.verifiers():
        yield _line(change.name, change)
    yield _line(f"solved ({found.rule.reward})", found.passed())
    if (sampled := found.sampled_reward()) is not None:
        yield _line("reward of samples", sampled)
    for _, change in found.pass_at():
        yield _line(change.name, change)
    for outcome in OUTCOMES:
        if count := found.count(outcome):
            yield f"{count:>6,} rows {WORDS[outcome]}"
    p = found.flips().p
    yield "no row flipped" if p is None else f"flips this uneven by chance alone: p = {p:.3g} (McNemar, exact)"


def named(evaluation: Evaluation) -> str:
    """What was evaluated, in words."""
    if evaluation.checkpoint == "base" or evaluation.step == 0:
        return "before training"
    return f"step {evaluation.step}" if evaluation.checkpoint is None else evaluation.checkpoint


def _line(name: str, change: Change) -> str:
    before, after, difference = map(_told, (change.before, change.after, change.difference))
    return f"{name:<24} {before:>24} {after:>24} {difference:>26}"


def _told(found: Estimate) -> str:
    if found.value is None:
        return "-"
    interval = "" if found.low is None else f" [{found.low:.3f}, {found.high:.3f}]"
    return f"{found.value:.3f}{interval}"


def _change(change: Change) -> dict[str, Any]:
    parts = {"before": change.before, "after": change.after, "difference": change.difference}
    return {"name": change.name, **{part: asdict(found) for part, found in parts.items()}}
