"""Which letter a text chooses, and which option a gold means. Each row is a kind: mend the reader, not the row."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.verifiers.discovery import load_file

[SPEC] = load_file(Path(__file__).resolve().parents[3] / "rewards" / "multiple_choice.py")
multiple_choice = SPEC.function
CITIES = ["Rome", "Oslo", "Paris", "Bonn"]


@pytest.mark.parametrize(
    "completion",
    [
        "C",
        "c",
        "(C)",
        "[C]",
        "C.",
        "C)",
        "**C**",
        "**C. Paris**",
        "C: Paris",
        "C. Paris",
        "(C) Paris",
        "Option C",
        "option c",
        "choice C",
        "Ｃ",
        "\\boxed{C}",
        "\\boxed C",
        "\\boxed{(C)}",
        "\\boxed{\\text{C}}",
        "\\boxed{\\text{(C) Paris}}",
        "\\boxed{C. Paris}",
        "\\boxed{\\text{C: more than ten}}",
        "$\\boxed{\\textbf{(C)}}$",
        "\\boxed{A} no \\boxed{C}",
        "The answer is \\boxed{C}.",
        "The answer is C",
        "The answer is (C)",
        "The answer is: C",
        "The answer is **C**.",
        "The answer is $C$",
        'The answer is "C"',
        "The answer is `C`",
        "The answer is choice C",
        "The answer is C++",
        "The correct answer is option C.",
        "The correct option is C because it fits.",
        "The correct letter is C",
        "The answer to the question is C.",
        "The best answer would be C",
        "The answer is C, A is wrong",
        "The answer is C and I am sure",
        "Answer: C",
        "answer: c",
        "Answer: (c)",
        "**Answer:** C",
        "**Answer: C**",
        "Final answer: C",
        "**Final Answer**\n\nC",
        "Final answer\n\n**C**",
        "I choose C.",
        "I'd go with (C).",
        "I choose option (C)",
        "My choice is C",
        "#### C",
        "####C",
        "C is correct.",
        "Option C is the correct answer.",
        "(C) is the best choice",
        "A is wrong. C is correct",
        "The answer: A looks wrong. Answer: C",
        "Let me think.\n\nC\n",
        "C\n\nBecause it is Paris.",
        "C) Paris\n\nBecause it is the capital.",
        "The options are as follows.\nA) x\nB) y\nC) z\n\nThe answer is C.",
        "So it must be (C).",
        "I think it is **C**",
        "<think>The answer is A</think>C",
        "<answer>C</answer>",
        "<answer>C) Paris</answer>",
        "答案是C",
        "答案：C",
        "答案是（C）。",
        "正确答案是 C。",
        "選C",
        "정답은 C",
        "정답은 C입니다",
    ],
)
def test_a_chosen_letter_is_read(completion: str) -> None:
    assert multiple_choice(completion, "C").extracted == "C"
    assert multiple_choice(completion, "C").score == 1.0
    assert multiple_choice(completion, "D").score == 0.0


@pytest.mark.parametrize(
    "completion",
    [
        "",
        "vitamin",
        "\\boxed{A, C}",
        "\\boxed{AC}",
        "\\boxed{}",
        "\\boxed{C",
        "\\boxed{C} no \\boxed{",
        "The answer is A or C",
        "The answer is C or A",
        "The answer is C and D",
        "The answer is B, C",
        "The answer is A, B, C and D",
        "The answer is A/C",
        "B or C are possible",
        "The answer is B or C are possible",
        "The answer is C or A are possible",
        "A, B, C, D",
        "A\nB\nC\nD",
        "A) x\nB) y\nC) z\nD) w",
        "A) x B) y C) z",
        "C) z D) w",
        "Reply with the letter of the correct option: A, B, C or D.",
        "Both (A) and (C) fit",
        "I would not choose C.",
        "Neither B nor C is correct.",
        "Is C correct?",
        "The answer is not C",
        "The answer isn't C",
        "The answer is Cat",
        "The answer is C-sharp",
        "Cats are nice",
        "<think>C",
        "<answer>A</answer> C",
        "C <answer></answer>",
    ],
)
def test_what_chooses_nothing_or_several_is_wrong(completion: str) -> None:
    assert multiple_choice(completion, "C").score == 0.0


@pytest.mark.parametrize("completion", ["I don't choose C. I pick B", "The answer is C. No wait, the answer is A."])
def test_the_last_choice_counts(completion: str) -> None:
    assert multiple_choice(completion, "C").score == 0.0


@pytest.mark.parametrize(
    ("completion", "gold", "expected"),
    [
        ("A", "A", 1.0),
        ("(A)", "A", 1.0),
        ("**A**", "A", 1.0),
        ("A. Dog", "A", 1.0),
        ("A: Dog", "A", 1.0),
        ("Option A", "A", 1.0),
        ("The answer is A", "A", 1.0),
        ("The answer is A.", "A", 1.0),
        ("The answer is a.", "A", 1.0),
        ("answer: a", "A", 1.0),
        ("The answer is (a)", "A", 1.0),
        ("The answer is A because it fits", "A", 1.0),
        ("The answer is A, which is x", "A", 1.0),
        ("A is correct", "A", 1.0),
        ("答案是A。", "A", 1.0),
        ("정답은 A입니다", "A", 1.0),
        ("A dog is here", "A", 0.0),
        ("A man went home.\nThen what?", "A", 0.0),
        ("A lot", "A", 0.0),
        ("The answer is a function", "A", 0.0),
        ("The answer is A function", "A", 0.0),
        ("I choose a number", "A", 0.0),
        ("What is a good answer? A good one.", "A", 0.0),
        ("The answer is e.g. 5", "E", 0.0),
        ("I", "I", 1.0),
        ("The answer is (I)", "I", 1.0),
        ("I think so", "I", 0.0),
        ("I am sure", "I", 0.0),
        ("The answer is I think B", "I", 0.0),
    ],
)
def test_a_word_is_not_a_letter(completion: str, gold: str, expected: float) -> None:
    assert multiple_choice(completion, gold).score == expected


@pytest.mark.parametrize(
    ("answer", "more", "letter"),
    [
        ("C", {}, "C"),
        ("c", {}, "C"),
        ("(C)", {}, "C"),
        ("C.", {}, "C"),
        ("C) Paris", {}, "C"),
        (["C"], {}, "C"),
        (0, {}, "A"),
        (2, {}, "C"),
        (2.0, {}, "C"),
        ("2", {}, "C"),
        (2, {"first": 1}, "B"),
        ("Paris", {"choices": CITIES}, "C"),
        ("paris ", {"choices": CITIES}, "C"),
        ("2", {"choices": ["1", "2", "3"]}, "B"),
        (2, {"choices": ["1", "2", "3"]}, "C"),
        (2, {"choices": [1, 2, 3]}, "C"),
        (True, {"choices": ["False", "True"]}, "B"),
        ("B", {"choices": {"text": CITIES, "label": list("ABCD")}}, "B"),
        ("2", {"choices": {"text": CITIES, "label": list("1234")}}, "B"),
        ("B", {"choices": {"A": "x", "B": "y"}}, "B"),
    ],
)
def test_a_gold_means_one_option(answer: Any, more: dict[str, Any], letter: str) -> None:
    assert SPEC.ideal is not None
    ideal = SPEC.ideal(answer=answer, **more)
    assert ideal == f"The answer is ({letter})."
    assert multiple_choice(ideal, answer, **more).score == 1.0
    assert multiple_choice("The answer is (D).", answer, **more).score == 0.0


@pytest.mark.parametrize(
    ("answer", "more", "reason"),
    [
        (None, {}, "missing"),
        ("", {}, "empty"),
        ([], {}, "empty list"),
        ({}, {}, "an object"),
        (float("nan"), {}, "nan"),
        (10, {}, "none of the options ABCDEFGHIJ"),
        (-1, {}, "none of the options"),
        (0, {"first": 1}, "numbers count from 1"),
        (True, {}, "none of the options"),
        ("Paris", {}, "none of the options"),
        ("A, C", {}, "none of the options"),
        ("Lyon", {"choices": CITIES}, "none of the options ABCD"),
        ("E", {"choices": CITIES}, "none of the options ABCD"),
        ("E", {"options": 4}, "none of the options ABCD"),
        ("x", {"choices": ["x", "x", "y"]}, "several of the options"),
        ("A", {"choices": ["B", "A"]}, "several of the options"),
        ("A", {"choices": "abc"}, "the choices are not a list"),
        ("A", {"choices": ["only"]}, "the choices are not a list"),
    ],
)
def test_a_gold_that_means_no_option_abstains(answer: Any, more: dict[str, Any], reason: str) -> None:
    assert SPEC.ideal is not None
    assert SPEC.ideal(answer=answer, **more) is None
    verdict = multiple_choice("The answer is A", answer, **more)
    assert verdict.score is None
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("Paris", 1.0),
        ("paris.", 1.0),
        ("The answer is Paris.", 1.0),
        ("The answer is: **Paris**", 1.0),
        ("\\boxed{Paris}", 1.0),
        ("\\boxed{\\text{Paris}}", 1.0),
        ("<answer>Paris</answer>", 1.0),
        ("The answer is Oslo", 0.0),
        ("Paris is nice", 0.0),
        ("Rome, Oslo, Paris, Bonn", 0.0),
    ],
)
def test_the_text_of_an_option_is_its_letter(completion: str, expected: float) -> None:
    assert multiple_choice(completion, "C", CITIES).score == expected


def test_several_golds_are_alternatives() -> None:
    assert multiple_choice("B", ["A", "B"]).score == 1.0
    assert multiple_choice("C", ["A", "B"]).score == 0.0
    assert multiple_choice("A and B", ["A", "B"]).score == 0.0


@pytest.mark.parametrize("options", [1, 0, 27])
def test_the_number_of_options_is_checked(options: int) -> None:
    assert SPEC.check is not None
    assert "from 2 to 26" in str(SPEC.check(options=options, first=0))


@pytest.mark.parametrize(
    "completion",
    [
        "Option A is incorrect",
        "(A) is not right",
        "(A) is clearly wrong.",
        "I can rule out **A**.",
        "It can't be option A.",
        "It’s not (A)",
        "Anything but (A)",
        "The answer is not (A).",
        "Could it be (A)?",
        "I don't think the answer is A.",
        "I don't think A is correct",
        "If A is correct then it rains",
        "The wrong answer is A",
        "(A) can be eliminated",
        "(A), which is false",
        "A) is incorrect",
    ],
)
def test_a_letter_that_is_rejected_or_asked_about_is_not_chosen(completion: str) -> None:
    assert multiple_choice(completion, "A").score == 0.0
    assert multiple_choice(completion, "A").extracted is None


@pytest.mark.parametrize(
    "completion",
    [
        "The answer is (A)(B)(C)(D)",
        "Answer: A; B; C; D",
        "Answer: A | B",
        "Answer: A + B",
        "Answer: A or maybe B",
        "Answer: A (or B)",
        "Answer: A, possibly B",
        "Answer: A and/or B",
        "Answer: A B C D",
        "Answer: A\nB\nC\nD",
        "\\boxed{A \\text{ or } B}",
        "(A) or (B)",
        "**A** or maybe **B**",
    ],
)
def test_no_way_of_joining_letters_pays(completion: str) -> None:
    assert multiple_choice(completion, "A").score == 0.0
    assert multiple_choice(completion, "B").score == 0.0


@pytest.mark.parametrize(
    "completion",
    [
        "The answer is 'C'.",
        "The answer is “C”",
        "“C”",
        "{'answer': 'C'}",
        "C is the answer.",
        "C is my final answer",
        "definitely C",
        "The answer is clearly C.",
        "Ans: C",
        "Ans. (C)",
        "C, because it is Paris",
        "\\boxed{\\mathbf{C}}",
        "$\\mathsf{C}$",
        "The answer is not A but C",
        "It is not (A), so it must be (C).",
        "(A) is wrong, (C) fits",
        "We rule out A, B; **C** remains",
        "The answer is (C). (A) is wrong",
        "**C**\n\n(A) is wrong because",
        "The answer is C; A is wrong",
        "The answer is C. However, A is correct in some contexts.",
        "C is correct in some cases",
        "The answer is C\nB is tempting.",
        "I'm not sure, but I think it is (C)",
    ],
)
def test_what_is_said_of_other_letters_leaves_the_choice(completion: str) -> None:
    assert multiple_choice(completion, "C").score == 1.0
    assert multiple_choice(completion, "A").score == 0.0


@pytest.mark.parametrize(
    "gold",
    ["\\boxed{C}", "\\text{C}", "$C$", "#### C", "Option C", "Ｃ", "So x.\nThe answer is (C)."],
)
def test_a_gold_may_state_its_letter(gold: str) -> None:
    assert [multiple_choice(letter, gold).score for letter in "CD"] == [1.0, 0.0]


@pytest.mark.parametrize("gold", ["The answer is C or D", "\\boxed{}", "\\boxed{7}", "A cat", "Not C"])
def test_a_gold_that_states_no_single_letter_abstains(gold: str) -> None:
    assert multiple_choice("C", gold).score is None


@pytest.mark.parametrize(
    "text",
    [
        "answer: ",
        "answer is A, ",
        "(A",
        "A) ",
        "A\n",
        "the answer to ",
        "####",
        "or A ",
        "* ",
        " ",
        "\n",
        "A and ",
        "\\boxed{A",
        "(A)",
        "B ",
        "not (A) ",
        "A is correct ",
        "\\text{",
    ],
)
def test_every_scan_is_linear(text: str) -> None:
    """About 200 kB each; a quadratic scan takes minutes."""
    began = time.process_time()
    multiple_choice(text * (200_000 // len(text)), "B", CITIES)
    assert time.process_time() - began < 1.5
