"""The one rule by which scores make a reward, and what it does with sums that no trainer can use."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from grpo_studio.config import RewardSettings
from grpo_studio.data import Sample
from grpo_studio.store.records import ScoreRecord
from grpo_studio.training.rewards import JudgedRewards, without_excess
from grpo_studio.verifiers.bench.probes import whole_score
from grpo_studio.verifiers.judge import Score
from grpo_studio.weighted_reward import LARGEST, weighted_reward

SAMPLE = Sample(({"role": "user", "content": "?"},), "?", "12", {})
LARGE = (
    "from grpo_studio.verifiers import verifier\n\n\n"
    "@verifier(examples=[('a', {}, 1e38)])\ndef large(completion: str) -> float:\n"
    "    return 1e38 if completion == 'a' else 1.0\n"
)


def record(value: float | None, weight: float = 1.0) -> ScoreRecord:
    return ScoreRecord("some", value, weight)


@pytest.mark.parametrize(
    ("scores", "reward"),
    [
        ([record(1.0, 2.0), record(-0.5)], 1.5),
        ([], 0.0),
        ([record(None, 0.0), record(1.0)], 1.0),
        ([record(1e308, 0.0), record(1.0)], 1.0),
        ([record(None), record(1e308, 10.0)], None),
        ([record(1e308, 10.0)], None),
        ([record(-1e308, 10.0)], None),
        ([record(1e308, 10.0), record(-1e308, 10.0)], None),
        ([record(3e38), record(3e38)], None),
        ([record(1e30, 1e-20)], 1e10),
        ([record(LARGEST)], LARGEST),
        ([record(LARGEST), record(-LARGEST)], None),
        ([record(math.inf)], None),
        ([record(math.nan)], None),
    ],
)
def test_what_adds_up_to_no_usable_number_is_no_reward(scores: list[ScoreRecord], reward: float | None) -> None:
    assert weighted_reward(scores) == reward


def test_the_largest_rewards_keep_their_means_and_deviations_in_float32() -> None:
    rewards = torch.tensor([LARGEST, -LARGEST] * 64)
    assert math.isfinite(rewards.mean().item())
    assert math.isfinite(rewards.std().item())


@pytest.mark.parametrize(
    ("scores", "places"),
    [
        ([record(1.0), record(1e38, 10.0)], [1]),
        ([record(-1e308, 10.0), record(1e308)], [0]),
        ([record(1e300, 0.0), record(1.0)], []),
        ([record(None), record(1e308, 10.0)], []),
    ],
)
def test_the_score_most_at_fault_is_the_one_that_is_told(scores: list[ScoreRecord], places: list[int]) -> None:
    found = without_excess(scores)
    assert [place for place, one in enumerate(found) if one.outcome == "non_finite"] == places
    assert all(found[place].value is None and "times the weight" in found[place].reason for place in places)
    assert [one for place, one in enumerate(found) if place not in places] == [
        one for place, one in enumerate(scores) if place not in places
    ]
    assert weighted_reward(found) == weighted_reward(scores)


def test_trainer_record_and_bench_agree(tmp_path: Path) -> None:
    """What TRL is handed has no value where the recorded reward has none."""
    (tmp_path / "large.py").write_text(LARGE)
    rewards = [RewardSettings(verifier="large", weight=10.0), RewardSettings(verifier="large", name="bare", weight=0.0)]
    judged = JudgedRewards(rewards, [tmp_path])
    try:
        given = [
            function(completions=completions, completion_ids=[[1], [1]], sample=[0, 0])
            for completions in [["a", "b"]]
            for function in judged.functions([SAMPLE])
        ]
    finally:
        judged.close()
    assert given == [[None, 1.0], [1e38, 1.0]]
    assert [weighted_reward(row) for row in judged.latest()] == [None, 10.0]
    assert [row[0].outcome for row in judged.latest()] == ["non_finite", "ok"]
    scores = [Score(1e38, "", None, 0.0, "ok")] * 2
    assert whole_score(rewards, scores).value is None
