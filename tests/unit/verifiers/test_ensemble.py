from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.verifiers import problems_of
from grpo_studio.verifiers.discovery import load_file
from grpo_studio.verifiers.judge import Judge, JudgeRequest

REWARDS = Path(__file__).resolve().parents[3] / "rewards"
[SPEC] = load_file(REWARDS / "ensemble.py")
NUMERIC, TAGS = {"verifier": "math_numeric"}, {"verifier": "format_tags"}
OVERLONG = {"verifier": "soft_overlong", "params": {"max_length": 100, "cache": 50}, "low": -1, "high": 0}


def score(text: str, parts: list[dict[str, Any]], clip: bool = True, **columns: Any) -> float | None:
    return SPEC.function(text, parts=parts, clip=clip, **columns).score


def test_the_weights_are_shares() -> None:
    assert score("12", [NUMERIC, TAGS], answer="12") == 0.5
    assert score("12", [NUMERIC | {"weight": 3}, TAGS], answer="12") == 0.75
    assert score("12", [NUMERIC | {"weight": 30}, TAGS | {"weight": 10}], answer="12") == 0.75
    assert score("12", [NUMERIC, TAGS | {"weight": 0}], answer="12") == 1.0


def test_parts_of_another_scale_are_brought_to_0_to_1() -> None:
    assert score("12", [OVERLONG], completion_tokens=50) == 1.0
    assert score("12", [OVERLONG], completion_tokens=75) == 0.5
    assert score("12", [NUMERIC, OVERLONG], completion_tokens=100, answer="12") == 0.5


def test_a_value_beyond_its_range_is_cut_unless_clip_is_off() -> None:
    narrow = [NUMERIC | {"low": 0.0, "high": 0.5}]
    assert score("12", narrow, answer="12") == 1.0
    assert score("12", narrow, clip=False, answer="12") == 2.0
    assert score("12", [OVERLONG | {"low": -0.5}], completion_tokens=100) == 0.0
    assert score("12", [OVERLONG | {"low": -0.5}], clip=False, completion_tokens=100) == -1.0


def test_the_reason_lists_every_part() -> None:
    reason = SPEC.function("13", parts=[NUMERIC, OVERLONG], answer="12", completion_tokens=75).reason
    assert "math_numeric 0 (50%)" in reason
    assert "soft_overlong -0.5 (50%)" in reason


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"answer": ""}, "math_numeric abstained"),
        ({}, "math_numeric needs a column 'answer'"),
        ({"answer": None}, "math_numeric"),
    ],
)
def test_one_part_that_abstains_makes_the_whole_abstain_with_its_name(columns: dict[str, Any], named: str) -> None:
    verdict = SPEC.function("<think>a</think><answer>12</answer>", parts=[TAGS, NUMERIC], **columns)
    assert verdict.score is None
    assert named in verdict.reason


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "from 1 to"),
        (["math_numeric"], "write {verifier: NAME"),
        ([{"weight": 1}], "write {verifier: NAME"),
        ([{"verifier": "math_numrc"}], "did you mean math_numeric"),
        ([NUMERIC, {"verifier": "regex_match"}], "part 2: regex_match needs the param 'pattern'"),
        ([NUMERIC | {"params": {"tolerance": 3}}], "tolerance is 3"),
        ([NUMERIC | {"low": 1}], "must be below high"),
        ([NUMERIC | {"low": 1, "high": 0}], "must be below high"),
        ([NUMERIC | {"weight": 0}, TAGS | {"weight": 0}], "weights of all parts are 0"),
        ([NUMERIC | {"weight": -1}], "0 or more"),
        ([NUMERIC | {"weight": "1"}], "must be a number"),
        ([NUMERIC | {"weight": float("nan")}], "finite"),
        ([NUMERIC | {"weight": 10**400}], "finite"),
        ([NUMERIC | {"weight": 1e308}, TAGS | {"weight": 1e308}], "the weights of all parts sum to more"),
        ([NUMERIC | {"low": -1e308, "high": 1e308}], "too far apart"),
        ([NUMERIC | {"wieght": 1}], "unknown key"),
        ([{"verifier": "ensemble", "params": {"parts": [NUMERIC]}}], "part of an ensemble"),
        ([{"verifier": "reward_model"}], "scored by the trainer"),
    ],
)
def test_bad_parts_are_one_message_at_set_up(parts: list[Any], message: str) -> None:
    [problem] = problems_of(SPEC, {"parts": parts}, [])
    assert message in problem


def test_its_ideal_completion_is_that_of_its_heaviest_part_that_has_one() -> None:
    assert SPEC.ideal is not None
    parts = [NUMERIC, TAGS | {"weight": 2}]
    text = SPEC.ideal(parts=parts, answer="12")
    assert text is not None
    assert score(text, parts, answer="12") == 1.0


@given(st.text(), st.floats(0.1, 10), st.floats(0, 10))
def test_any_text_and_weights_stay_between_0_and_1(text: str, first: float, second: float) -> None:
    value = score(text, [NUMERIC | {"weight": first}, TAGS | {"weight": second}], answer="12")
    assert value is not None
    assert -1e-9 <= value <= 1 + 1e-9


def test_it_works_in_a_judge_process() -> None:
    request = JudgeRequest("ensemble", {"parts": [TAGS, {"verifier": "length_range", "params": {"max_chars": 40}}]})
    with Judge([request], [REWARDS]) as judge:
        [scores] = judge.score(["<think>a</think><answer>12</answer>", "short", "x" * 50], {})
    assert [one.value for one in scores] == [1.0, 0.5, 0.0]
