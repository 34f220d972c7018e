"""Which box counts and what is equal to a gold. Each row is a kind: mend the reader, not the row."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.verifiers.discovery import load_file

[SPEC] = load_file(Path(__file__).resolve().parents[3] / "rewards" / "math_boxed.py")
math_boxed = SPEC.function


@pytest.mark.parametrize(
    ("completion", "answer", "expected"),
    [
        ("\\boxed{7}", "7", 1.0),
        ("\\fbox{7}", "7", 1.0),
        ("\\boxed 7", "7", 1.0),
        ("\\boxed  {7}", "7", 1.0),
        ("$\\boxed{7}$.", "7", 1.0),
        ("\\boxed{11}, no: \\boxed{13}", "13", 1.0),
        ("\\boxed{11}, no: \\boxed{13}", "11", 0.0),
        ("\\boxed{\\boxed{13}}", "13", 1.0),
        ("\\boxed{\\frac{1}{\\sqrt{2}}}", "\\frac{1}{\\sqrt{2}}", 1.0),
        ("\\boxed{\\{1,2\\}}", "\\{1,2\\}", 1.0),
        ("\\boxed{42", "42", 0.0),
        ("\\boxed{1} \\boxed{42", "42", 0.0),
        ("\\boxed{1} \\boxed{42", "1", 0.0),
        ("\\boxed{\\frac{1}{2}", "1/2", 0.0),
        ("\\boxed{42}}", "42", 1.0),
        ("\\boxed{}", "5", 0.0),
        ("\\boxed{ }", "5", 0.0),
        ("\\boxed{$}", "5", 0.0),
        ("\\boxed", "5", 0.0),
        ("\\\\boxed{5}", "5", 0.0),
        ("\\boxedx{5}", "5", 0.0),
        ("boxed{5}", "5", 0.0),
        ("<think>\\boxed{9}</think> I am not sure.", "9", 0.0),
        ("<think>\\boxed{8}</think> \\boxed{9}", "9", 1.0),
        ("<think>\\boxed{9}", "9", 0.0),
        ("\\boxed{9} <think> or not", "9", 0.0),
        ("chain </think> \\boxed{9}", "9", 1.0),
        ("<answer>\\boxed{6}</answer>", "6", 1.0),
        ("<answer>6</answer> \\boxed{6}", "6", 1.0),
        ("\\boxed{<answer>6</answer>}", "6", 1.0),
        ("The answer is 12.", "12", 0.0),
        ("#### 12", "12", 0.0),
        ("12", "12", 0.0),
        ("", "12", 0.0),
        ("正确答案是 \\boxed{15}。", "15", 1.0),
        ("정답은 \\boxed{15}입니다.", "15", 1.0),
        ("＼ｂｏｘｅｄ｛１５｝", "15", 1.0),
        ("\\boxed{\\text{sum} = 5 + 4} gives \\boxed{9}", "9", 1.0),
    ],
)
def test_the_last_closed_box_after_the_thinking_is_the_answer(completion: str, answer: str, expected: float) -> None:
    assert math_boxed(completion, answer).score == expected


EQUAL = [
    ("12.", "12"),
    ("12,", "12"),
    ("−6", "-6"),
    ("- 6", "-6"),
    ("- \\frac{1}{2}", "-0.5"),
    ("+6", "6"),
    ("(6)", "6"),
    ("{6}", "6"),
    ("１５", "15"),
    ("1,250", "1250"),
    ("1{,}250", "1250"),
    ("1\\,250", "1250"),
    ("1e5", "100000"),
    ("\\frac38", "3/8"),
    ("0.375", "\\frac{3}{8}"),
    ("\\dfrac{3}{8}", "$\\frac{3}{8}$"),
    ("-\\frac{3}{8}", "-0.375"),
    ("3\\frac{1}{2}", "3.5"),
    ("3 1/2", "7/2"),
    ("60°", "60"),
    ("60^\\circ", "60"),
    ("60^{\\circ}", "60°"),
    ("35\\%", "35"),
    ("35\\%", "0.35"),
    ("\\$9", "9"),
    ("-\\$9", "-9"),
    ("€9", "9"),
    ("9 dollars", "$9"),
    ("9\\text{ cm}", "9"),
    ("9", "9\\text{ cm}"),
    ("9 cm", "9\\text{ cm}"),
    ("9cm", "9\\ \\text{cm}"),
    ("\\text{9 cm}", "9"),
    ("9\\,\\mathrm{cm}^2", "9"),
    ("9\\text{ m/s}", "9"),
    ("5\\text{m}", "5"),
    ("36 apple", "36 apples"),
    ("\\text{36}", "36"),
    ("**36**", "36"),
    ("$36$", "36"),
    ("\\(36\\)", "36"),
    ("x=4", "4"),
    ("4", "x = 4"),
    ("\\text{Area} = 4", "4"),
    ("2^3", "2^{3}"),
    ("x^2", "x^{2}"),
    ("5m", "5m"),
    ("5:30", "5:30"),
    ("(1,5)", "(1, 5)"),
    ("27, 64", "27,64"),
    ("\\left(1,2\\right)", "(1,2)"),
    ("\\sqrt 2", "\\sqrt{2}"),
    ("π", "\\pi"),
    ("\\mathrm{e}", "e"),
    ("\\text{no solution}", "No  Solution"),
    ("\\text{C}", "C"),
    ("\\textbf{(C)}", "(C)"),
    ("true", "True"),
    ("5 million", "5000000"),
    ("5000원", "5000"),
    ("3개", "3"),
    ("3人", "3"),
    ("3時間", "3"),
    ("₩5000", "5000"),
    ("5000원", "₩5000"),
    ("5 m", "5"),
    ("5 m", "5m"),
    ("5 meters", "5 m"),
    ("5 square units", "5"),
    ("5 points", "5"),
    ("5 seconds", "5"),
    ("5 cups of flour", "5"),
    ("12 more apples", "12"),
    ("5¢", "5"),
    ("5 USD", "$5"),
    ("(C)", "C"),
    ("\\text{(C)}", "C"),
    ("C", "(C)"),
    ("1 \\\\ 2", "1\\\\2"),
    ("2021_{5}", "2021_5"),
]


@pytest.mark.parametrize(("given", "gold"), EQUAL)
def test_what_is_equal(given: str, gold: str) -> None:
    assert math_boxed(f"\\boxed{{{given}}}", gold).score == 1.0


@pytest.mark.parametrize(
    ("given", "gold"),
    [
        ("6", "-6"),
        ("17", "7"),
        ("1 2", "12"),
        ("12", "1 2"),
        ("1 2 x", "12 x"),
        ("{5}{6}", "56"),
        ("x^{12}", "x^1 2"),
        ("9\\text{ cm}", "9\\text{ km}"),
        ("9 cm^2", "9 cm"),
        ("36 apples", "36 pears"),
        ("€9", "£9"),
        ("y=4", "x=4"),
        ("3500\\%", "35\\%"),
        ("5", "x+5"),
        ("x+5", "5"),
        ("2", "2\\mathrm{e}"),
        ("2\\text{i}", "2"),
        ("2\\pi", "2"),
        ("5ab", "5"),
        ("5m", "5"),
        ("5!", "5"),
        (">5", "5"),
        ("5 \\pm 2", "5"),
        ("5 \\cdot 3", "5"),
        ("101_2", "101"),
        ("5 \\text{ million}", "5"),
        ("5 million", "5"),
        ("5 bn", "5"),
        ("5 ab", "5"),
        ("5 billionths", "5"),
        ("5\\text{ percent}", "5"),
        ("4 or 5", "4"),
        ("4 or 5", "5"),
        ("27", "27, 64"),
        ("64,27", "27,64"),
        ("(1,6)", "(1,5)"),
        ("D", "C"),
        ("c", "C"),
        ("False", "True"),
        ("0.33", "1/3"),
        ("1000000.4", "1000000"),
        ("9" * 500, "9" * 501),
        ("1e999999999", "1"),
        ("€5", "$5"),
        ("€5", "\\$5"),
        ("-€5", "-$5"),
        ("5 m", "5 s"),
        ("5人", "5本"),
        ("(D)", "C"),
        ("1 \\\\ 2", "1\\\\3"),
        ("5 x", "5"),
    ],
)
def test_what_is_not_equal(given: str, gold: str) -> None:
    assert math_boxed(f"\\boxed{{{given}}}", gold).score == 0.0


@pytest.mark.parametrize(
    "words",
    [
        "millions",
        "thousands",
        "lakh",
        "crore",
        "score",
        "half",
        "thirds",
        "hundredths",
        "sqrt",
        "log",
        "dozens",
        "percent",
        "squared",
        "ten",
        "万",
        "千",
        "倍",
        "以上",
        "배",
        "만",
        "divided by two",
        "less than ten",
        "below zero",
        "more than ten",
        "of them",
        "and a half",
    ],
)
def test_words_that_change_a_number_are_no_unit_of_it(words: str) -> None:
    assert math_boxed(f"\\boxed{{5 {words}}}", "5").score == 0.0
    assert math_boxed(f"\\boxed{{5\\text{{ {words}}}}}", "5").score == 0.0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (4, 1.0),
        (4.0, 1.0),
        ("  4 \n", 1.0),
        (["4", "four"], 1.0),
        (["3", 4], 1.0),
        ("\\boxed{4}", 1.0),
        ("2 + 2 = 4, so \\boxed{4}.", 1.0),
        ("He has <<2+2=4>>4.\n#### 4", 1.0),
        (5, 0.0),
        (True, 0.0),
        ("40", 0.0),
        ("", None),
        ("  ", None),
        (None, None),
        ([], None),
        ([None, ""], None),
        ({"value": 4}, None),
        (float("nan"), None),
        (float("inf"), None),
        (10**500, None),
        ("$$", None),
        ("4}", None),
        ("\\boxed{4", None),
    ],
)
def test_golds_of_every_type(answer: Any, expected: float | None) -> None:
    assert math_boxed("\\boxed{4}", answer).score == expected


def test_a_truth_value_is_a_word() -> None:
    assert [math_boxed(f"\\boxed{{{word}}}", True).score for word in ("True", "true", "False", "1")] == [
        1.0,
        1.0,
        0.0,
        0.0,
    ]


@pytest.mark.parametrize(
    ("completion", "answer", "expected"),
    [
        ("The answer is 12.", "12", 1.0),
        ("#### 12", "12", 1.0),
        ("So 7 and then 12", "12", 1.0),
        ("<answer>no solution</answer>", "no solution", 1.0),
        ("no solution", "no solution", 1.0),
        ("The answer is C", "C", 1.0),
        ("The answer is D", "C", 0.0),
        ("answer: x+1", "x+1", 1.0),
        ("answer: x+1", "1", 0.0),
        ("The answer is 2x", "2x", 1.0),
        ("The answer is clear. So 12", "12", 1.0),
        ("So 12. The answer is C", "12", 0.0),
        ("The answer is 12 or 13", "12", 0.0),
        ("The answer is 12 apples", "12", 1.0),
        ("\\boxed{11} The answer is 12", "12", 0.0),
        ("\\boxed{12", "12", 0.0),
        ("<think>12", "12", 0.0),
        ("The answer is 17", "7", 0.0),
        ("12 or 13", "12", 0.0),
        ("", "12", 0.0),
    ],
)
def test_without_a_box_only_the_lenient_mode_reads_on(completion: str, answer: str, expected: float) -> None:
    assert math_boxed(completion, answer, strict=False).score == expected
    assert math_boxed(completion, answer).score == 0.0


@pytest.mark.parametrize(
    "gold", [*sorted({gold for _, gold in EQUAL}), 4, 4.0, True, ["four", 4], "so \\boxed{4}", "#### 4"]
)
def test_the_gold_in_a_box_is_right(gold: Any) -> None:
    assert SPEC.ideal is not None
    ideal = SPEC.ideal(answer=gold, strict=True)
    assert ideal is not None
    assert math_boxed(ideal, gold).score == 1.0


@pytest.mark.parametrize("gold", ["", None, {}, "$", "4}", "\\boxed{4"])
def test_a_gold_that_cannot_be_boxed_has_no_ideal(gold: Any) -> None:
    assert SPEC.ideal is not None
    assert SPEC.ideal(answer=gold, strict=True) is None


def test_the_verdict_says_what_was_read() -> None:
    verdict = math_boxed("\\boxed{11} and \\boxed{12\\text{ cm}}", "13")
    assert verdict.extracted == "12\\text{ cm}"
    assert verdict.reason == "12\\text{ cm} is not 13"
    assert math_boxed("12", "12").reason == "no box"
    assert "never closes" in math_boxed("\\boxed{12", "12").reason
    assert "an object with 'value'" in math_boxed("\\boxed{4}", {"value": 4}).reason


@pytest.mark.parametrize(
    "text", ["\\boxed{", "\\boxed", "\\\\boxed", "\\", "{", "}", "\\boxed{1}", "\\text{", "$", "\\fbox 1"]
)
def test_every_scan_is_linear(text: str) -> None:
    """About 200 kB each, bare and in a box; a quadratic scan takes minutes."""
    long = text * (200_000 // len(text))
    began = time.process_time()
    math_boxed(long, "7")
    math_boxed(f"\\boxed{{{long}}}", "7")
    math_boxed(f"\\boxed{{{text * (2000 // len(text) - 1)}}}", "7")
    assert time.process_time() - began < 1.5
