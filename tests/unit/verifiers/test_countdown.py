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
[SPEC] = load_file(REWARDS / "countdown.py")
NUMBERS = [7, 5, 2]


def score(text: str, answer: Any = 24, **values: Any) -> float | None:
    return SPEC.function(text, answer, **({"numbers": NUMBERS} | values)).score


@pytest.mark.parametrize(
    "text",
    [
        "<answer>(7+5)*2</answer>",
        "<answer>\n(7 + 5) * 2 = 24\n</answer>",
        "<answer>24 = 2*(5+7)</answer>",
        "<answer>`(7 + 5) \u00d7 2`</answer>",
        "<answer>**(7 + 5) * 2**</answer>",
        "<answer>$(7+5) \\times 2$</answer>",
        "<answer>$(7+5)\\times2$</answer>",
        "$(7+5)\\times2$",
        "So $2\\cdot(5+7)\\div1$, or rather $2\\cdot(5+7)$.",
        "<answer>(7+5)*2 = 12*2 = 24</answer>",
        "(7+5)*2 = 12*2 = 24",
        "<answer>(7+5)*2 == 24</answer>",
        "<answer>(7+5)*2 = 24 \u2713</answer>",
        "<answer>(7+5)*2 = 24 \u2714\ufe0f</answer>",
        "<answer>\\boxed{(7+5)*2}</answer>",
        "<answer>(7+5)*2",
        "<answer>\uff087\uff0b5\uff09\u00d72</answer>",
        "First 9 * 9 = 81, no.\n\\boxed{2 \\cdot (7+5) = 24}",
        "So it is (7 + 5) * 2 = 24.",
        "Numbers 7, 5 and 2.\nThe answer is: 2*(5+7)",
        "<think>7 * 5 = 35</think>\n(7+5)*2",
        "<answer>--7*2+5*2</answer><answer>(7+5)*2</answer>",
    ],
)
def test_an_equation_that_is_right_in_any_dress(text: str) -> None:
    assert score(text) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "24",
        "<answer>24</answer>",
        "<answer></answer>",
        "<answer>12 * 2</answer>",
        "<answer>75 - 51</answer>",
        "<answer>(7+5)*2*2/2</answer>",
        "<answer>(7+5)*2 + 0</answer>",
        "<answer>7 * 5 * 2</answer>",
        "<answer>(7+5)*2 = 25</answer>",
        "<answer>7+5 = 12 = 24</answer>",
        "<answer>12*2 = (7+5)*2 = 24</answer>",
        "<answer>(7+5)*2 = 12*3 = 24</answer>",
        "<answer>(7+5)*2 = 12*2 = 25</answer>",
        "<answer>(7+5)*2 = 24 =</answer>",
        "<answer>(7+5)*2 ==== 24</answer>",
        "<answer>(7+5)*2 = 24 \u2717</answer>",
        "<answer>\u2713</answer>",
        "$(7+5)\\timesx2$",
        "<answer>(7+5)**2</answer>",
        "<answer>(7+5)2</answer>",
        "<answer>7+5*2*</answer>",
        "<answer>(7+5)*2 # 9</answer>",
        "<answer>5/(7-5-2)</answer>",
        "<answer>__import__('os').getpid()</answer>",
        "<think>(7+5)*2 = 24</think>",
        "<think>(7+5)*2 = 24",
        "(7+5)*2 = 24\nI am not sure.",
        "<answer>(7+5)*2</answer> or <answer>7*5-2</answer>",
        "\\boxed{(7+5)*2",
        "<answer>" + "(" * 5000 + "</answer>",
        "1+" * 100_000,
        "9**9**9**9",
    ],
)
def test_anything_else_scores_0_with_a_reason(text: str) -> None:
    verdict = SPEC.function(text, 24, numbers=NUMBERS)
    assert verdict.score == 0.0
    assert verdict.reason


def test_some_numbers_may_be_left_out_on_request() -> None:
    assert score("<answer>7+5</answer>", 12) == 0.0
    assert score("<answer>7+5</answer>", 12, use_all=False) == 1.0
    assert score("<answer>7+5+5-5</answer>", 12, use_all=False) == 0.0


def test_a_number_given_twice_is_used_twice() -> None:
    assert score("<answer>9+9+9-9</answer>", 18, numbers=[9, 9, 9, 9]) == 1.0
    assert score("<answer>9+9</answer>", 18, numbers=[9, 9, 9, 9]) == 0.0


@pytest.mark.parametrize("answer", [24, 24.0, "24", " 24.0 ", [24], ["7", "24"]])
def test_gold_of_any_type_that_is_a_target(answer: Any) -> None:
    assert score("<answer>(7+5)*2</answer>", answer) == 1.0


@pytest.mark.parametrize("answer", [None, "", "twenty-four", True, {"a": 24}, [], [None], float("nan"), 10**50, "1/0"])
def test_any_other_gold_abstains(answer: Any) -> None:
    verdict = SPEC.function("<answer>(7+5)*2</answer>", answer, numbers=NUMBERS)
    assert verdict.score is None
    assert verdict.reason
    assert SPEC.ideal is not None
    assert SPEC.ideal(answer, numbers=NUMBERS) is None


@pytest.mark.parametrize(
    "columns",
    [
        {"nums": [7, 5, 2]},
        {"nums": "[7, 5, 2]"},
        {"nums": ["7", 5.0, 2]},
        {"nums": "7 5 2"},
        {"nums": "7, 5 and 2"},
        {"numbers": [7, 5, 2]},
        {"nums": [1], "numbers": [7, 5, 2]},
    ],
)
def test_the_numbers_may_be_a_column(columns: dict[str, Any]) -> None:
    assert SPEC.function("<answer>(7+5)*2</answer>", "24", **columns).score == 1.0


@pytest.mark.parametrize("columns", [{}, {"nums": None}, {"nums": []}, {"nums": "none"}, {"nums": {"a": 1}}])
def test_without_numbers_it_abstains(columns: dict[str, Any]) -> None:
    assert SPEC.function("<answer>(7+5)*2</answer>", "24", **columns).score is None


def test_bad_numbers_are_one_message_at_set_up() -> None:
    assert problems_of(SPEC, {}, ["answer"]) == []
    for numbers in ([], ["x"], [1] * 51):
        assert len(problems_of(SPEC, {"numbers": numbers}, ["answer"])) == 1


@given(st.lists(st.integers(1, 30), min_size=2, max_size=4), st.integers(1, 50))
def test_its_own_ideal_completion_scores_1_and_never_for_the_next_target(numbers: list[int], target: int) -> None:
    assert SPEC.ideal is not None
    if text := SPEC.ideal(target, numbers=numbers):
        assert score(text, target, numbers=numbers) == 1.0
        assert score(text, target + 1, numbers=numbers) == 0.0


def test_its_ideal_completion_leaves_numbers_out_where_it_may() -> None:
    assert SPEC.ideal is not None
    assert SPEC.ideal(12, numbers=NUMBERS) is None
    text = SPEC.ideal(12, numbers=NUMBERS, use_all=False)
    assert text is not None
    assert score(text, 12, use_all=False) == 1.0


@given(st.text())
def test_any_text_is_scored(text: str) -> None:
    assert score(text) in (0.0, 1.0)
    assert score(f"<answer>{text}</answer>") in (0.0, 1.0)


def test_it_works_in_a_judge_process() -> None:
    with Judge([JudgeRequest("countdown", {"numbers": NUMBERS})], [REWARDS]) as judge:
        [scores] = judge.score(["(7+5)*2", "9**9**9**9"], {"answer": ["24", 24]})
    assert [one.value for one in scores] == [1.0, 0.0]


def test_a_gold_too_long_to_print_abstains_too() -> None:
    assert score("<answer>(7+5)*2</answer>", 10**5000) is None


def test_a_judge_fills_the_param_from_the_column_and_the_param_wins() -> None:
    requests = [JudgeRequest("countdown"), JudgeRequest("countdown", {"numbers": [9, 15]})]
    with Judge(requests, [REWARDS]) as judge:
        [[by_column], [by_param]] = judge.score(["<answer>(7+5)*2</answer>"], {"answer": ["24"], "numbers": [NUMBERS]})
    assert by_column.value == 1.0
    assert by_param.value == 0.0
