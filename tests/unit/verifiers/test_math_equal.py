"""Which part of a text is its answer, golds of every form, and what the verdict says."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from math_pairs import SPEC, boxed, math_equal

from grpo_studio.verifiers.discovery import problems_of


@pytest.mark.parametrize(
    ("completion", "gold", "expected"),
    [
        ("First \\boxed{11}, no: \\boxed{13}", "13", 1.0),
        ("First \\boxed{11}, no: \\boxed{13}", "11, 13", 0.0),
        ("\\boxed{1} and \\boxed{2}", "1, 2", 0.0),
        ("\\boxed{13} and then \\boxed{4", "13", 0.0),
        ("\\boxed{}", "5", 0.0),
        ("<think>perhaps \\boxed{8}</think> \\boxed{9}", "9", 1.0),
        ("<think>perhaps \\boxed{9}</think> hm", "9", 0.0),
        ("<think>\\boxed{9}", "9", 0.0),
        ("<answer>\\boxed{6}</answer>", "6", 1.0),
        ("\\boxed{\\boxed{5}}", "5", 1.0),
        ("\\boxed 7", "7", 1.0),
        ("答案是 \\boxed{１５}。", "15", 1.0),
        ("\\boxed{−6}", "-6", 1.0),
        ("The answer is 12.", "12", 1.0),
        ("**Final answer:** $\\frac{3}{8}$", "0.375", 1.0),
        ("The answer is C.", "C", 1.0),
        ("#### -4\n", "-4", 1.0),
        ("The answer is 3. No: the answer is 4.", "4", 1.0),
        ("The answer is not 5", "5", 0.0),
        ("so $x=3$, and thus $y = 4$", "4", 1.0),
        ("thus \\[ x = \\frac{1}{2} \\]", "0.5", 1.0),
        ("<answer>42</answer>", "42", 1.0),
        ("42", "42", 1.0),
        ("It costs $5 and not quite $7 in all", "7", 0.0),
        ("I tried 3, 4, 5.\nThen I gave up.", "5", 0.0),
        ("The answer is:\n\\[\n5\n\\]", "5", 1.0),
        ("The answer is:\n\n$$\n5\n$$\nwhich is below $7$.", "5", 1.0),
        ("The answer is:\n\n$$\n5\n$$\nwhich is below $7$.", "7", 0.0),
        ("The answer is:\n\\begin{align*}\nx &= 2+3\\\\\n&= 5\n\\end{align*}", "5", 1.0),
        ("The answer is:\n\\[\n\\begin{aligned}\nx &= 5\n\\end{aligned}\n\\]", "5", 1.0),
        ("The answer is:\n\\[\n5\n", "5", 0.0),
        ("The answer is as follows:\n\\(\n5\n\\)", "5", 1.0),
        ("The answer is 5 because 2+3=5", "5", 1.0),
        ("The answer is 5 because 2+3=5", "2", 0.0),
        ("The answer is 5 since the sum of it is 7", "7", 0.0),
        ("The answer is 3 (since 1+2=3).", "3", 1.0),
        ("The answer is 3, as 1+2=3", "3", 1.0),
        ("The answer is B because it fits.", "B", 1.0),
        ("The answer is \\(5\\), since \\(2+3=5\\).", "5", 1.0),
        ("The answer is \\(5\\) million.", "5000000", 1.0),
        ("The answer is 5 (or 6).", "5", 0.0),
        ("The answer is 5 or more.", "5", 0.0),
        ("The answer is 5 (mod 7).", "5", 0.0),
        ("The answer is 5 as well as 6", "5", 0.0),
        ("The answer is 5, as well as 6", "5", 0.0),
        ("The answer is therefore 5.", "5", 1.0),
        ("The answer is thus $5$.", "5", 1.0),
        ("The answer is therefore not 5.", "5", 0.0),
        ("The answer is $5$, not $6$.", "5", 1.0),
        ("The answer is 5, not 6.", "6", 0.0),
        ("The answer is $1$, $2$.", "1, 2", 1.0),
        ("The answer is $1$ and $2$.", "1", 0.0),
        ("정답은 5입니다.", "5", 1.0),
        ("정답은 5개입니다.", "5", 1.0),
        ("정답은 5가 아닙니다.", "5", 0.0),
        ("답은 5 입니다.", "5", 1.0),
        ("答えは5です。", "5", 1.0),
        ("答えは5ではありません。", "5", 0.0),
        ("故答案为：5.", "5", 1.0),
        ("答案是5元。", "5", 1.0),
        ("答案不是5", "5", 0.0),
        ("", "5", 0.0),
    ],
)
def test_which_part_of_a_completion_is_its_answer(completion: str, gold: str, expected: float) -> None:
    assert math_equal(completion, gold).score == expected


def test_threads_do_not_disturb_each_other() -> None:
    pairs = [("\\sqrt{12}", "2\\sqrt{3}", 1.0), ("e^{200}+1", "e^{200}", 0.0), ("\\sin 2x", "2\\sin x\\cos x", 1.0)]
    pairs += [(f"\\sqrt{{{n}}}+e^{{{n}}}", f"e^{{{n}}}+{n}^{{1/2}}", 1.0) for n in range(2, 150)]

    def judge(pair: tuple[str, str, float]) -> bool:
        return bool(math_equal(boxed(pair[0]), pair[1]).score == pair[2])

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(judge, pairs * 3))


def test_with_strict_box_only_a_box_counts() -> None:
    assert math_equal("The answer is 12.", "12", strict_box=True).score == 0.0
    assert math_equal("\\boxed{12}", "12", strict_box=True).score == 1.0


@pytest.mark.parametrize(
    ("gold", "right", "wrong"),
    [
        (4, "4", "5"),
        (4.0, "4", "4.1"),
        (0.5, "\\frac12", "2"),
        (True, "True", "False"),
        (["4", "four score"], "four score", "five"),
        ([None, "4"], "4", "5"),
        (["\\frac{1}{2}", "\\frac{1}{3}"], "1/3", "1/4"),
        ("  4 \n", "4", "5"),
        ("He earns 40*25=<<40*25=1000>>1,000.\n#### 1,250", "1250", "1000"),
        ("We add and get $\\boxed{\\frac{\\sqrt{7}}{5}}$ as asked.", "\\sqrt{7}/5", "7/5"),
        ("The answer is $x = 3$.", "3", "4"),
        ("$x=1$ or $x=2$", "2, 1", "2"),
        ("$\\{1,2\\}$.", "\\{2,1\\}", "\\{2\\}"),
        ("7^{7^{7^{7^{7}}}}", "7^{7^{7^{7^{7}}}}", "7"),
        ("\\int_0^1 f(t)\\,dt", "\\int_0^1 f(t) dt", "\\int_0^2 f(t) dt"),
        ("是", "是", "否"),
    ],
)
def test_gold_of_every_form(gold: Any, right: str, wrong: str) -> None:
    assert math_equal(boxed(right), gold).score == 1.0
    assert math_equal(boxed(wrong), gold).score == 0.0


@pytest.mark.parametrize(
    "gold",
    [
        None,
        "",
        "   ",
        {},
        {"answer": "4"},
        [],
        [[]],
        float("nan"),
        float("inf"),
        10**500,
        "???",
        "$$",
        "\\boxed{}",
        "\\frac{1}{",
        "We first add the numbers one by one and then we look at the table that was given in the text of the question "
        "and find that there is more than one way to read it which makes it hard.",
        "x" * 5000,
    ],
    ids=lambda gold: f"{gold!r:.20}",
)
def test_a_gold_that_is_no_answer_abstains_with_its_reason(gold: Any) -> None:
    verdict = math_equal("\\boxed{4}", gold)
    assert verdict.score is None
    assert "gold" in verdict.reason
    assert SPEC.ideal is not None
    assert SPEC.ideal(gold, **SPEC.params) is None


def test_what_was_read_and_why_it_is_wrong_are_said() -> None:
    verdict = math_equal("\\boxed{x = 5}", "$x = 4$")
    assert (verdict.score, verdict.extracted) == (0.0, "x = 5")
    assert "x = 4" in verdict.reason
    assert math_equal("\\boxed{ \\frac{1}{2} }", "0.5").extracted == "\\frac{1}{2}"
    assert "false" in math_equal("\\boxed{2+2=5}", "5").reason
    assert "costly" in math_equal("\\boxed{9^{9^{9}}}", "5").reason


def test_a_tolerance_is_relative_and_of_numbers_only() -> None:
    assert math_equal("\\boxed{3.14}", "\\pi", tolerance=0.001).score == 1.0
    assert math_equal("\\boxed{3.1}", "\\pi", tolerance=0.001).score == 0.0
    assert math_equal("\\boxed{(99.9, 2)}", "(100, 2)", tolerance=0.01).score == 1.0
    assert math_equal("\\boxed{1.0001x}", "x", tolerance=0.01).score == 0.0
    assert problems_of(SPEC, {"tolerance": 1.5}, ["answer"]) == [
        "math_equal: tolerance is 1.5; it must be at least 0 and below 1"
    ]


def test_every_gsm8k_gold_matches_itself_and_not_the_next(shared_dir: Path) -> None:
    path = shared_dir / "data" / "gsm8k_test.jsonl"
    golds = [json.loads(line)["answer"] for line in path.read_text(encoding="utf-8").splitlines()]
    values = [gold.rpartition("####")[2].strip() for gold in golds]
    assert len(golds) == 1319
    for at, gold in enumerate(golds):
        following = values[(at + 1) % len(values)]
        assert math_equal(boxed(values[at]), gold).score == 1.0
        if values[at] != following:
            assert math_equal(boxed(following), gold).score == 0.0
