"""How an answer is read and compared. Each row is a kind: mend the reader, not the row."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.verifiers.answer_text import normalise
from grpo_studio.verifiers.discovery import load_file
from grpo_studio.verifiers.numbers import readings

[SPEC] = load_file(Path(__file__).resolve().parents[3] / "rewards" / "math_numeric.py")
math_numeric = SPEC.function


@pytest.mark.parametrize(
    ("completion", "answer", "expected"),
    [
        ("x", None, None),
        ("7", {}, None),
        ("7", [], None),
        ("4", ["4", "four"], 1.0),
        ("4", 4.0, 1.0),
        ("4", True, None),
        ("4", "27 and 64", None),
        ("**12**", "12", 1.0),
        ("The answer is 12 or 13", "12", 0.0),
        ("The answer is 12 apples, or maybe 13 apples.", "12", 0.0),
        ("The answer is 12, 13, 14", "12", 0.0),
        ("#### 12 and 13", "12", 0.0),
        ("答案是 12 或 13", "12", 0.0),
        ("The answer is 0.5 or 1/2", "0.5", 1.0),
        ("The answer is 5 and she has 3 left.", "5", 1.0),
        ("The answer is 72, which is 6 dozen.", "72", 1.0),
        ("The answer is 3 hours 20 minutes", "3", 1.0),
        ("12,", "12", 1.0),
        ("So 1e-5", "0.00001", 1.0),
        ("\\frac{3}{8}", "3/8", 1.0),
        ("\\frac38", "0.375", 1.0),
        ("-\\frac{3}{8}", "-3/8", 1.0),
        ("6.02 \\times 10^{23}", "6.02e23", 1.0),
        ("6.02×10²³", "6.02e23", 1.0),
        ("3½", "3.5", 1.0),
        ("½", "0.5", 1.0),
        ("０．５", "1/2", 1.0),
        ("−6", "-6", 1.0),
        ("正确答案是15。", "15", 1.0),
        ("정답은 15입니다.", "15", 1.0),
        ("답은 15입니다", "15", 1.0),
        ("答案：１５", "15", 1.0),
        ("1e999999999", "1", 0.0),
        ("1e400", "7", 0.0),
        ("1e401", "7", 0.0),
        ("0.0000003", "0.0000004", 0.0),
        ("0.0000003", "3e-7", 1.0),
        ("#### ", "7", 0.0),
        ("####", "7", 0.0),
        ("I got 7\n#### ", "7", 0.0),
        ("#### 7\n#### ", "7", 0.0),
        ("<think>the answer is 8</think> 9", "8", 0.0),
        ("<think>answer is 8", "8", 0.0),
        ("a</think>The answer is 8", "8", 1.0),
        ("<answer>8</answer>", "8", 1.0),
        ("<answer>\\boxed{6}</answer>", "6", 1.0),
        ("\\boxed{6", "6", 0.0),
        ("\\boxed 7", "7", 1.0),
        ("\\boxed{3, 5}", "5", 0.0),
        ("#### $1,250.00", "1250", 1.0),
        ("#### 1,250 dollars", "1250", 1.0),
        ("#### -$5", "-5", 1.0),
        ("#### - 4", "-4", 1.0),
        ("- 4 apples", "4", 1.0),
        ("10 - 3", "3", 0.0),
        ("10 -3", "-3", 0.0),
        ("the answer is -4", "-4", 1.0),
        ("from 5 to -3", "-3", 1.0),
        ("**Final Answer:** 36", "36", 1.0),
        ("**Final Answer**\n\n36", "36", 1.0),
        ("### Final Answer\n\n**36** units, from 3", "36", 1.0),
        ("The final answer is: $36$.", "36", 1.0),
        ("the answer is 3 + 4 = 7 apples", "7", 1.0),
        ("answer is 2x", "2", 0.0),
        ("the answer is √2", "2", 0.0),
        ("2\\sqrt{3}", "3", 0.0),
        ("2\\sqrt{3}", "2", 0.0),
        ("15cm", "15", 1.0),
        ("x_1 = 5", "5", 1.0),
        ("x2", "2", 0.0),
        ("1.250", "1.25", 1.0),
        ("1,5", "5", 0.0),
        ("1.250,75", "75", 0.0),
        ("1:30", "30", 0.0),
        ("3-4", "4", 0.0),
        ("2024-05-12", "12", 0.0),
        ("35%", "35", 1.0),
        ("35%", "0.35", 1.0),
        ("3500%", "35%", 0.0),
        ("35\\%", "35%", 1.0),
        ("Answer: 1_000", "1000", 1.0),
        ("1 250", "1250", 1.0),
        ("5 6 7 100", "100", 1.0),
        ("10^5", "100000", 1.0),
        ("2^10 = 1024", "1024", 1.0),
        ("1{,}250", "1250", 1.0),
        ("infinity", "7", 0.0),
        ("nan", "7", 0.0),
        ("2.9999999999999996", "3", 1.0),
        ("1000000000.4", "1000000000", 0.0),
        ("100000000000000.4", "100000000000000", 0.0),
        ("0.3333333333333333", "1/3", 1.0),
        ("0.33", "1/3", 0.0),
        ("3/0", "3", 0.0),
        ("7", "3/0", None),
        ("#### 3. Check\nThe answer is 5", "5", 1.0),
        ("#### Step 3\nSo 5", "5", 1.0),
        ("The answer is clear. So 5", "5", 1.0),
        ("She has 3 3/4 cups", "3.75", 1.0),
        ("٣٦", "36", 1.0),
        ("Answer: 36.", "36", 1.0),
        ("The answer is 36!", "36", 1.0),
        ("(36)", "36", 1.0),
        ("x = 2 = 1+1", "2", 1.0),
        ("20% of 50 = 10", "10", 1.0),
        ("7", "7.0", 1.0),
        ("7.", "7", 1.0),
        ("36...", "36", 1.0),
        ("is...5", "5", 1.0),
        ("No.5", "5", 1.0),
        ("USD 15", "15", 1.0),
        ("USD15", "15", 1.0),
        ("$-4", "-4", 1.0),
        ("\\$9", "9", 1.0),
        ("60^\\circ", "60", 1.0),
        ("60°", "60", 1.0),
        ("The answer is 12 apples - 3 were red", "12", 1.0),
        ("5*-3 = -15", "-15", 1.0),
        ("\\boxed{x=-3}", "-3", 1.0),
        ("\\boxed{- 3}", "-3", 1.0),
        ("\\boxed{36\\text{ apples}}", "36", 1.0),
        ("\\boxed{\\$36}", "36", 1.0),
        ("#### 36 (that is 3 * 12)", "36", 1.0),
        ("7", 7, 1.0),
        ("#### 42\ud800", "42", 1.0),
        ("Answer: 5k", "5", 0.0),
        ("\u200b36\u200b", "36", 1.0),
        ("$1 250,50", "50", 0.0),
        ("The answer to the 2nd question is 36", "36", 1.0),
        ("3 1/2", "3.5", 1.0),
        ("-3 1/2", "-3.5", 1.0),
        ("He has 12 dollars = 1200 cents", "1200", 1.0),
        ("Answer: .5", "0.5", 1.0),
        ("-.5", "-0.5", 1.0),
        ("1,00,000", "100000", 1.0),
        ("so 4 × 9 = 36 ✓", "36", 1.0),
        ("36\n\n", "36", 1.0),
        ("#### 36\n(The answer is right.)", "36", 1.0),
        ("The area is 36 cm^2.", "36", 1.0),
        ("The area is 36 cm².", "36", 1.0),
        ("The area is 36 \\text{ cm}^{2}", "36", 1.0),
        ("at 7 m s^{-1}", "7", 1.0),
        ("The answer is x^2", "2", 0.0),
        ("2^3", "3", 0.0),
        ("\\fbox{7}", "7", 1.0),
        ("Answer: **$1,250**", "1250", 1.0),
        ("\\(\\boxed{1{,}250}\\)", "1250", 1.0),
        ("The answer is:\n\n36", "36", 1.0),
        ("The answer is 7 or 8", "8", 0.0),
    ],
)
def test_the_answer_is_read_as_a_person_would(completion: str, answer: Any, expected: float | None) -> None:
    assert math_numeric(completion, answer).score == expected


@pytest.mark.parametrize(
    ("completion", "answer", "expected"),
    [
        ("The answer is 18 (9 + 9).", "18", 1.0),
        ("#### 18 (9 x 2)", "18", 1.0),
        ("The answer is 18 (or 19)", "18", 0.0),
        ("The answer is (3, 5)", "3", 0.0),
        ("#### 5(3)", "5", 0.0),
        ("The answer is $18$ (9 + 9).", "18", 1.0),
        ("#### 10112", "1011_2", None),
        ("20215", "2021_5", None),
        ("\\boxed{1011_{2}}", "1011", 0.0),
        ("1011_2", "1011", 0.0),
        ("1011_2", "10112", 0.0),
        ("The answer is 1011_2 = 11", "11", 1.0),
        ("The answer is 1011_{2} = 11", "11", 1.0),
        ("1_000_000", "1000000", 1.0),
        ("1_00", "100", 0.0),
        ("The answer is 2021_5", "20215", 0.0),
        ("The answer is 1.5 million", "1.5", 0.0),
        ("The answer is 1.5 million", "1500000", 1.0),
        ("3 thousand", "3", 0.0),
        ("She has 3 thousand apples", "3000", 1.0),
        ("#### 3 thousand", "3000", 1.0),
        ("She has 3 thousand apples", "3", 0.0),
        ("5 dozen", "60", 1.0),
        ("36万", "360000", 1.0),
        ("答案是36万", "36", 0.0),
        ("答案是36千克", "36", 1.0),
        ("정답은 3억", "300000000", 1.0),
        ("3 hundred thousand", "300000", 1.0),
        ("3万5", "5", 0.0),
        ("3万5千", "5000", 0.0),
        ("The answer is 2 thousand 5 hundred", "2000", 0.0),
        ("$1.5 Million.", "1500000", 1.0),
        ("5 hundredths", "5", 0.0),
        ("5 hundred-dollar bills", "5", 1.0),
        ("\\boxed{5!}", "5", 0.0),
        ("The answer is $5!$", "5", 0.0),
        ("The answer is 5 factorial", "5", 0.0),
        ("5 factorial", "5", 0.0),
        ("The answer is 36!", "36", 1.0),
        ("**36!**", "36", 1.0),
        ("The answer is 5! = 120", "120", 1.0),
        ("5! = 120", "120", 1.0),
        ("\\boxed{5! = 120}", "120", 1.0),
        ("120", "5!", None),
        ("5 squared", "5", 0.0),
        ("5 squared = 25", "25", 1.0),
        ("36 squared feet", "36", 1.0),
        ("The answer is between 3 and 5", "3", 0.0),
        ("The answer is 3, 4 or 5", "3", 0.0),
        ("It is 3, 4 or 5", "5", 0.0),
        ("It is 3, 4 or 5", "3", 0.0),
        ("It is 36 or 37.", "37", 0.0),
        ("It is 0.5 or 1/2.", "0.5", 1.0),
        ("The answer is 3 hours and 30 minutes", "3", 1.0),
        ("The answer is 3 to 5", "3", 0.0),
        ("The answer is 3, 4 and 5 apples", "3", 0.0),
        ("Answer:\n- 7", "7", 1.0),
        ("Answer:\n- 7", "-7", 0.0),
        ("Answer:\n-7", "-7", 1.0),
        ("The answer is:\n\n- $7", "7", 1.0),
        ("#### - 4", "-4", 1.0),
        ("Answer: - 4", "-4", 1.0),
        ("####\n- 4", "4", 1.0),
        ("#### 18 eggs at $2 each = $36", "36", 1.0),
        ("#### 18 eggs at $2 each = $36", "18", 0.0),
        ("The answer is 40% of 50 = 20", "20", 1.0),
        ("The answer is 40% of 50 = 20", "40", 0.0),
        ("The answer is 3 times 12, which is 36", "36", 1.0),
        ("The answer is 3 times 12", "3", 0.0),
        ("The answer is minus 7", "-7", 1.0),
        ("The answer is minus 7", "7", 0.0),
        ("It is negative 7", "-7", 1.0),
        ("It is minus 7", "-7", 1.0),
        ("It is minus 7", "7", 0.0),
        ("#### minus $7", "-7", 1.0),
        ("10 minus 7", "-7", 0.0),
        ("apples minus 7", "-7", 0.0),
        ("The answer is 5 minus 7", "5", 0.0),
        ("####\n36", "36", 1.0),
        ("####\n\n36", "36", 1.0),
        ("####\nI got 36", "36", 0.0),
        ("####\n3. Check 5", "5", 0.0),
        ("_72_", "72", 1.0),
        ("The answer is _72_.", "72", 1.0),
        ("_72 apples_", "72", 1.0),
        ("x_72", "72", 0.0),
        ("x _72", "72", 0.0),
        ("\\frac{1}{-2}", "-0.5", 1.0),
        ("1/-2", "-0.5", 1.0),
        ("The answer is not 5 but 7", "7", 1.0),
        ("The answer is not 5 but 7", "5", 0.0),
        ("The answer is 7, not 5", "7", 1.0),
        ("The answer is not 5", "5", 0.0),
        ("100000000000000000000000", 1e23, 1.0),
        ("99999999999999991611392", 1e23, 0.0),
        ("11,\\! 111,\\! 100", "11111100", 1.0),
        ("(1,\\,234)", "1234", 0.0),
        ("The answer is 18 because 3 of 6 is 18", "18", 1.0),
        ("The answer is 18 in 3 days", "18", 1.0),
        ("The answer is 12 out of 20", "12", 1.0),
        ("The answer is 7 hours per 2 days", "7", 1.0),
        ("The answer is 7 for x = 3", "7", 1.0),
        ("The answer is 5 at x = 3", "5", 1.0),
        ("The answer is $18, since 9*2=18", "18", 1.0),
        ("The answer is 3 times a day", "3", 1.0),
    ],
)
def test_what_changes_or_limits_a_number_is_read(completion: str, answer: Any, expected: float | None) -> None:
    assert math_numeric(completion, answer).score == expected


@pytest.mark.parametrize(
    ("completion", "answer", "expected"),
    [
        ("9" * 300, "9" * 300, 1.0),
        ("9" * 300 + "8", "9" * 301, 0.0),
        ("9" * 5000, "9", 0.0),
        ("9", "9" * 5000, None),
        ("9", 10**500, None),
        ("9", float("nan"), None),
        ("9", float("inf"), None),
        ("1e-400", "1e-399", 0.0),
    ],
)
def test_numbers_too_large_to_judge_are_no_answer_and_no_gold(
    completion: str, answer: Any, expected: float | None
) -> None:
    assert math_numeric(completion, answer).score == expected


def test_a_tolerance_is_relative_and_asked_for() -> None:
    assert math_numeric("3.14", "3.14159").score == 0.0
    assert math_numeric("3.14", "3.14159", tolerance=0.001).score == 1.0
    assert math_numeric("3.14", "3.15", tolerance=0.001).score == 0.0


def test_the_verdict_says_what_was_read() -> None:
    verdict = math_numeric("So it costs $1,250.", "1251")
    assert verdict.extracted == "1,250"
    assert verdict.reason == "1,250 is not 1251"
    assert math_numeric("1.250,75", "1250.75").reason == "not a number in English notation"
    assert math_numeric("<think>7", "7").reason == "the thinking never ends"


@pytest.mark.parametrize(
    "gold",
    ["36", 36, 36.0, -4, "1,250", "$1,250.50", "-$5", "3/8", "3 1/2", "-\\frac{3}{8}", "6.02e23", "35%", ".5", "x = 5", ["none", "7"], "1 250", "10^5", "\\boxed{7}", "a 5\n#### 6", 0.1, 1e22],
)  # fmt: skip
def test_the_gold_after_a_marker_is_right(gold: Any) -> None:
    assert SPEC.ideal is not None
    ideal = SPEC.ideal(answer=gold, tolerance=0.0)
    assert ideal is not None
    assert math_numeric(ideal, gold).score == 1.0


@pytest.mark.parametrize("gold", ["", None, "none", "3 or 4", {}, [], True, float("nan"), "1.250,75"])
def test_a_gold_that_is_no_number_has_no_ideal(gold: Any) -> None:
    assert SPEC.ideal is not None
    assert SPEC.ideal(answer=gold, tolerance=0.0) is None
    assert math_numeric("7", gold).score is None


def test_the_reason_says_what_the_gold_lacks() -> None:
    assert math_numeric("7", None).reason == "the gold answer is missing"
    assert math_numeric("7", "none").reason == "the gold answer is not one number: 'none'"
    assert math_numeric("7", ["x", "y"]).reason == "the gold answer is not one number: ['x', 'y']"


def test_expressions_have_a_value_only_by_an_equals_sign() -> None:
    found = readings(normalise("3-4, 5 - 3 = 2, then 7 and −8"))
    assert [reading.number and str(reading.number.value) for reading in found] == [None, "2", "7", "-8"]


@pytest.mark.parametrize(
    "text",
    [
        "1" * 200000,
        "1 " * 100000,
        "1" + " " * 200000,
        "answer " * 30000,
        "the answer is " * 15000,
        "the answer is 1 " * 12000,
        "\\boxed{" * 28000,
        "#### " * 40000,
        "####" * 50000,
        "#### 1\n" * 28000,
        "1=" * 100000,
        "\\frac{" * 33000,
        "<think>" * 28000,
        "-" * 200000,
        "-1" * 100000,
        "1." * 100000,
        "1," * 100000,
        "1e" * 100000,
        "10^" * 66000,
        "{" * 200000,
        "²" * 200000,
        "答案是" * 66000,
        "final answer " * 15000,
        "1x" * 100000,
        "1/" * 100000,
        "answer to " * 20000,
        "a" * 200000 + "1",
        "answer" + " " * 200000,
        "1_" * 100000,
        "_1 " * 66000,
        "5 million " * 20000,
        "5" + " million" * 25000,
        "5" + "万" * 60000,
        "minus 7 " * 25000,
        "1!" * 100000,
        "####\n" * 40000,
        "####" + "\n" * 200000,
        "the answer is 1 " + "or 1 " * 40000,
        "the answer is 1" + " at 1" * 40000,
        "1\\!" * 66000,
        "1,\\! " * 40000,
        "\n" * 200000,
        "$" * 200000,
        "1 234" * 40000,
    ],
    ids=lambda text: text[:12].encode("unicode_escape").decode(),
)
def test_every_scan_is_linear(text: str) -> None:
    """About 200 kB each; a quadratic scan takes minutes."""
    began = time.process_time()
    math_numeric(text, "7")
    assert time.process_time() - began < 1.5
