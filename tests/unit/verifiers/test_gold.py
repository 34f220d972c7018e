"""A gold of any type as the texts of its accepted answers, or why there is none."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from grpo_studio.verifiers.gold import accepted_golds


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ("4", ("4",)),
        ("  4 \n", ("4",)),
        ("None", ("None",)),
        (4, ("4",)),
        (-4, ("-4",)),
        (0, ("0",)),
        (4.0, ("4",)),
        (-0.0, ("0",)),
        (1e23, ("1" + "0" * 23,)),
        (-1.5e300, ("-15" + "0" * 299,)),
        (0.5, ("0.5",)),
        (1e22, ("10000000000000000000000",)),
        (True, ("True", "true")),
        (False, ("False", "false")),
        (["4", "four"], ("4", "four")),
        (("4", 4, 4.0), ("4",)),
        (["4", None, "", {}, ["5"], float("nan")], ("4",)),
        ([True], ("True", "true")),
    ],
)
def test_accepted_texts(answer: Any, texts: tuple[str, ...]) -> None:
    assert accepted_golds(answer) == texts


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "the gold answer is missing"),
        ("", "the gold answer is empty"),
        (" \n", "the gold answer is empty"),
        ([], "the gold answer is an empty list"),
        ([""], "the gold answer is empty"),
        ([None], "the gold answer is missing"),
        ([["4"]], "the gold answer is a list of lists"),
        (float("nan"), "the gold answer is nan, not a finite number"),
        (float("-inf"), "the gold answer is -inf, not a finite number"),
        (10**401, "the gold answer is an integer of over 400 digits"),
        (
            {"value": 4, "unit": "cm"},
            "the gold answer is an object with 'value', 'unit'; choose the field that holds the answer",
        ),
        ({}, "the gold answer is an object with no fields; choose the field that holds the answer"),
        (b"4", "the gold answer is a bytes, which holds no answer"),
        (Decimal(4), "the gold answer is a Decimal, which holds no answer"),
    ],
)
def test_why_there_is_no_gold(answer: Any, reason: str) -> None:
    assert accepted_golds(answer) == reason


def test_the_longest_integer_can_be_printed() -> None:
    assert accepted_golds(10**400) == ("1" + "0" * 400,)


def test_an_object_of_many_fields_is_named_in_short() -> None:
    reason = accepted_golds({f"field {number} {'x' * 100}": 1 for number in range(1000)})
    assert isinstance(reason, str)
    assert len(reason) < 400
