"""In which form golds are written, and the short answer in each."""

from __future__ import annotations

from typing import Any

import pytest

from grpo_studio.data.gold_forms import form_of_golds, gold_short


def form(*golds: Any) -> str:
    return form_of_golds([{"gold": gold} for gold in golds], "gold")


@pytest.mark.parametrize(
    ("golds", "expected"),
    [
        (["6 + 6 = 12\n#### 12", "work\n#### -3"], "gsm8k"),
        (["#### 12"] * 19 + ["no mark"], "gsm8k"),
        (["#### 12"] * 9 + ["no mark"], "text"),
        (["#### 12", None, "", "  "], "gsm8k"),
        (["####", "12 ####  "], "text"),
        (["##### heading"], "text"),
        ([r"so $x = \boxed{\frac{1}{2}}$."], "boxed"),
        ([r"first \boxed{1}, then \boxed{2}"], "boxed"),
        ([r"\boxed{never closed"], "text"),
        ([r"\boxed{}"], "text"),
        ([12, 13], "text"),
        (["12"], "text"),
        ([None], "text"),
        ([], "text"),
    ],
)
def test_the_form_of_golds(golds: list[Any], expected: str) -> None:
    assert form(*golds) == expected


def test_without_a_gold_column_the_form_is_text() -> None:
    assert form_of_golds([{"gold": "#### 1"}], None) == "text"


@pytest.mark.parametrize(
    ("value", "form", "short"),
    [
        ("6 + 6 = 12\n#### 12", "gsm8k", "12"),
        ("#### 1\n#### 1,200 ", "gsm8k", "1,200"),
        ("no mark", "gsm8k", "no mark"),
        (r"$\boxed{1}$ is wrong, $\boxed{\frac{1}{2}}$.", "boxed", r"\frac{1}{2}"),
        ("no box", "boxed", "no box"),
        (" 12 ", "text", "12"),
        ("#### 12", "text", "#### 12"),
        ("007", "text", "007"),
        (12, "gsm8k", "12"),
        (0, "text", "0"),
        (False, "text", "False"),
        (["a", "b"], "boxed", "['a', 'b']"),
        (None, "gsm8k", None),
        ("", "gsm8k", ""),
    ],
)  # fmt: skip
def test_the_short_gold(value: Any, form: str, short: str | None) -> None:
    assert gold_short(value, form) == short


def test_a_gold_that_is_no_text_is_cut() -> None:
    for gold in (["x" * 9000] * 9, list(range(9000)), {"a": "x" * 9000}, [[[["deep"] * 9] * 9] * 9] * 9):
        assert len(str(gold_short(gold, "text"))) <= 200
    assert gold_short("x" * 9000, "text") == "x" * 9000
