"""From a scored batch to groups and metrics, on numbers worked out by hand."""

from __future__ import annotations

import pytest

from grpo_studio.store.records import ScoreRecord
from grpo_studio.training.scored_batch import (
    ScoredBatch,
    ScoredCompletion,
    batch_metrics,
    evaluation_metrics,
    group_kind,
)
from grpo_studio.weighted_reward import weighted_reward


def score(value: float | None, weight: float = 1.0, name: str = "right", outcome: str = "ok") -> ScoreRecord:
    return ScoreRecord(name, value, weight, outcome="abstained" if value is None else outcome)


def batch(values: list[float | None], group_size: int) -> ScoredBatch:
    scores = [(score(value),) for value in values]
    rows = [ScoredCompletion("q", "1", "t", 4, False, weighted_reward(row), 0.0, row) for row in scores]
    return ScoredBatch(rows, group_size)


def test_mean_and_sample_deviation_of_a_group() -> None:
    group = batch([1, 0, 0, 1, 1, 0, 0, 0], 8).groups()[0]
    assert group.reward_mean == 0.375
    assert group.reward_std == pytest.approx(0.5175, abs=1e-4)


def test_an_abstention_is_no_zero() -> None:
    group = batch([1, None, 0, 1], 4).groups()[0]
    assert group.reward_mean == pytest.approx(2 / 3)
    assert group.completions[1].reward is None


def test_an_abstention_of_weight_zero_does_not_take_the_reward_away() -> None:
    assert weighted_reward([score(1.0, 2.0), score(None, 0.0)]) == 2.0
    assert weighted_reward([score(1.0, 2.0), score(None, 0.1)]) is None


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 1, 1], "all_good"),
        ([0, 0, 0], "all_bad"),
        ([0, 1, 0], "mixed"),
        ([1, None, None], "unscored"),
        ([0.5, 0.5, None], "all_good"),
    ],
)
def test_group_kinds(values: list[float | None], kind: str) -> None:
    assert group_kind(batch(values, 3).groups()[0]) == kind


def test_fractions_of_groups() -> None:
    metrics = batch_metrics(batch([1, 1, 0, 0, 1, 0, None, None], 2).groups())
    assert metrics["group/all_good"] == metrics["group/all_bad"] == metrics["group/mixed"] == 0.25
    assert metrics["verifier/right/abstained"] == 2
    assert metrics["reward/right/mean"] == metrics["reward/mean"] == 0.5


def test_nothing_judged_gives_no_number() -> None:
    metrics = batch_metrics(batch([None, None], 2).groups())
    assert metrics["reward/mean"] is None
    assert metrics["reward/std"] is None


def test_evaluation_metrics_carry_their_own_names() -> None:
    groups = batch([1, 0, 1, 1], 1).groups("eval")
    assert evaluation_metrics(groups) == {"eval/reward": 0.75, "eval/right/mean": 0.75, "eval/abstained": 0}
