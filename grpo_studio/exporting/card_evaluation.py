"""What a card says of the held-out rows: the figures before training and of the exported weights, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from grpo_studio.checkpoints import Checkpoint
from grpo_studio.config import RunConfig
from grpo_studio.errors import StoreError
from grpo_studio.evaluation_passing import PassRule, pass_rule
from grpo_studio.evaluation_stats import (
    Estimate,
    Flips,
    flips,
    ks_of,
    mean_interval,
    paired_difference,
    pass_at_k_interval,
    share_interval,
)
from grpo_studio.queries.evaluated import EvaluatedRow, Evaluation, evaluated_rows, evaluations_of
from grpo_studio.store.folder import RunFolder

Rows = Mapping[bytes, EvaluatedRow]


@dataclass(frozen=True)
class Measure:
    """One figure before and after training; None where it was not taken."""

    name: str
    before: Estimate | None
    after: Estimate | None


@dataclass(frozen=True)
class Evaluated:
    """The held-out rows before and after training.

    Args:
        change: mean of the differences of the rows' rewards; None unless both were scored.
        flipped: rows that came to be solved, or no more are; None likewise.
        passed_by: what solves a row, in words.
        began_at: the step whose weights were scored first, 0 for the base model.
    """

    measures: Sequence[Measure]
    change: Estimate | None = None
    flipped: Flips | None = None
    passed_by: str = ""
    began_at: int = 0


def evaluated_at(folder: RunFolder, config: RunConfig, checkpoint: Checkpoint) -> Evaluated | None:
    """Of these very weights, or else of those before training alone; None when no rows were ever scored."""
    rule = pass_rule(config)
    try:
        known = evaluations_of(folder)
        # A branch begins with the weights of another run's checkpoint: it is scored there first.
        first = _first(known, lambda one: one.checkpoint is None and one.step <= checkpoint.step) or _first(
            known, lambda one: one.checkpoint == "base"
        )
        last = _first(known, lambda one: one.checkpoint == checkpoint.name) or _first(
            known, lambda one: one.checkpoint is None and one.step == checkpoint.step
        )
        before, after = _rows(first, rule), _rows(last, rule)
    except StoreError:
        return None
    if not before and not after:
        return None
    pairs = [(before[key], after[key]) for key in before if key in after]
    one, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return Evaluated(
        _measures([reward.label for reward in config.rewards], rule, before, after),
        paired_difference([row.reward for row in one], [row.reward for row in other]) if pairs else None,
        flips([_solved(row, rule) for row in one], [_solved(row, rule) for row in other]) if pairs else None,
        f"{rule.reward} of at least {rule.score:g}",
        first.step if first is not None else 0,
    )


def _rows(evaluation: Evaluation | None, rule: PassRule) -> Rows:
    return {} if evaluation is None else {row.key: row for row in evaluated_rows(evaluation, rule).rows}


def _first(known: Sequence[Evaluation], wanted: Callable[[Evaluation], bool]) -> Evaluation | None:
    return next((one for one in known if wanted(one)), None)


def _solved(row: EvaluatedRow, rule: PassRule) -> bool | None:
    return rule.judged(row.scores.get(rule.reward))


def _measures(labels: Sequence[str], rule: PassRule, before: Rows, after: Rows) -> list[Measure]:
    def both(name: str, estimate: Callable[[Rows], Estimate]) -> Measure:
        return Measure(name, estimate(before) if before else None, estimate(after) if after else None)

    def mean_of(label: str) -> Callable[[Rows], Estimate]:
        return lambda rows: mean_interval(row.scores.get(label) for row in rows.values())

    def pass_at(k: int) -> Callable[[Rows], Estimate]:
        return lambda rows: pass_at_k_interval(_counts(rows), k)

    most = max((row.sampled.judged for rows in (before, after) for row in rows.values() if row.sampled), default=0)
    return [
        both("mean reward", lambda rows: mean_interval(row.reward for row in rows.values())),
        *(both(f"mean of {label}", mean_of(label)) for label in labels if len(labels) > 1),
        both("solved (greedy)", lambda rows: share_interval(_solved(row, rule) for row in rows.values())),
        *(both(f"pass@{k}", pass_at(k)) for k in ks_of(most)),
    ]


def _counts(rows: Rows) -> list[tuple[int, int]]:
    """Judged and passed samples of each row."""
    return [(row.sampled.judged, row.sampled.passed) for row in rows.values() if row.sampled is not None]
