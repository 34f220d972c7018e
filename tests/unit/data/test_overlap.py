"""Questions that are one but for how they are written, and questions that are not."""

from __future__ import annotations

import pytest

from grpo_studio.data.overlap import normalised, overlapping


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is it?", "what is it"),
        ("What  is\tit ?\n", "What is it?"),
        ("It costs $3, right?", "It costs $3 right"),
        ("Don’t stop", "Don't stop"),
        ("“Why”, she said: go!", "Why she said go"),
        ("Ｗhat is １＋２？", "What is 1+2?"),
        ("Größe der STRASSE", "größe der straße"),
        ("a well-known man", "a well known man"),
        ("6 – 3", "6 - 3"),
        ("这是什么？", "这是什么"),
    ],
)
def test_writing_alone_makes_no_other_question(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("6 - 3", "6 / 3"),
        ("6 * 3", "6 + 3"),
        ("6 - 3", "6 3"),
        ("1.5 km", "15 km"),
        ("at 3:15", "at 315"),
        ("f(2)", "f'(2)"),
        ("f'(2)", "f''(2)"),
        ("5!", "5?"),
        ("(2 + 3) * 4", "2 + (3 * 4)"),
        ("2^3", "23"),
        ("x < 3", "x > 3"),
    ],
)
def test_signs_of_sums_make_another_question(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


def test_held_out_rows_that_are_trained_on_are_found() -> None:
    held_out = ["What is 6 - 3?", "Größe von “x”?", "Only here", "Don’t stop"]
    train = ["what is 6 / 3", "größe von x", "WHAT IS 6 - 3", "what is 6 - 3", "don't stop."]
    assert overlapping(held_out, train) == {0: 2, 1: 1, 3: 4}


@pytest.mark.parametrize(("held_out", "train"), [([], ["a"]), (["a"], []), ([], []), (["?"], ["b"]), (["?"], ["..."])])
def test_there_may_be_nothing_to_find(held_out: list[str], train: list[str]) -> None:
    assert overlapping(held_out, train) == {}


def test_two_held_out_rows_of_one_question_are_both_told() -> None:
    assert overlapping(["Why?", "why"], ["WHY"]) == {0: 0, 1: 0}
