from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grpo_studio.verifiers import problems_of
from grpo_studio.verifiers.discovery import load_file
from grpo_studio.verifiers.judge import Judge, JudgeRequest

REWARDS = Path(__file__).resolve().parents[3] / "rewards"
[SPEC] = load_file(REWARDS / "wrong_and_long.py")
LONG = "So much to say. " * 20


@pytest.mark.parametrize(
    ("text", "params", "score"),
    [
        (LONG + "13", {}, -0.1),
        (LONG + "12", {}, 0.0),
        ("13", {}, 0.0),
        ("12", {}, 0.0),
        ("", {}, 0.0),
        ("x" * 198 + " 13", {"past": 201}, 0.0),
        ("x" * 198 + " 13", {"past": 200}, -0.1),
        ("13" + " " * 500, {}, 0.0),
        (LONG + "13", {"penalty": -2.0}, -2.0),
        (LONG + "13", {"penalty": 0.0}, 0.0),
        (LONG + "13", {"past": 10_000}, 0.0),
        (LONG + "13", {"verifier": "regex_match", "params": {"pattern": "1."}}, 0.0),
        (LONG + "13", {"verifier": "regex_match", "params": {"pattern": "2."}}, -0.1),
        (LONG, {"verifier": "repetition_penalty", "right": -0.2}, -0.1),
        (LONG, {"verifier": "repetition_penalty", "right": -1.0}, 0.0),
    ],
)
def test_only_what_is_both_costs(text: str, params: dict[str, Any], score: float) -> None:
    assert problems_of(SPEC, params, ["answer"]) == []
    assert SPEC.function(text, "12", **params).score == score


def test_it_abstains_with_its_inner_verifier() -> None:
    verdict = SPEC.function(LONG + "13", "")
    assert verdict.score is None
    assert verdict.reason.startswith("math_numeric: ")
    assert SPEC.function(LONG, "12", verifier="length_target", params={"tokens": 5}).score is None


def test_other_columns_reach_the_inner_verifier() -> None:
    params = {"verifier": "length_target", "params": {"tokens": 5}}
    assert SPEC.function(LONG, "12", **params, completion_tokens=5).score == 0.0
    assert SPEC.function(LONG, "12", **params, completion_tokens=50).score == -0.1


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"verifier": "math_numrc"}, "did you mean math_numeric"),
        ({"verifier": "wrong_and_long"}, "itself"),
        ({"verifier": "regex_match"}, "needs the param 'pattern'"),
        ({"verifier": "reward_model"}, "scored by the trainer"),
        ({"penalty": 0.1}, "0 or negative"),
        ({"past": -1}, "0 or more"),
    ],
)
def test_a_bad_setting_is_one_message_at_set_up(params: dict[str, Any], message: str) -> None:
    [problem] = problems_of(SPEC, params, ["answer"])
    assert message in problem


def test_it_works_in_a_judge_process() -> None:
    with Judge([JudgeRequest("wrong_and_long")], [REWARDS]) as judge:
        [scores] = judge.score([LONG + "13", LONG + "12"], {"answer": ["12", "12"]})
    assert [one.value for one in scores] == [-0.1, 0.0]
