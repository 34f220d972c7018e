"""Columns that mix kinds of values are found while rows pass by."""

from __future__ import annotations

from typing import Any

import pytest

from grpo_studio.data.value_kinds import MOST_COLUMNS, Mixed, ValueKinds


def mixed(rows: list[dict[str, Any]]) -> list[Mixed]:
    kinds = ValueKinds()
    for number, row in enumerate(rows, start=1):
        kinds.add(number, row)
    return kinds.mixed()


def test_counts_and_first_rows_of_each_kind() -> None:
    rows = [{"q": "x", "answer": str(n)} for n in range(30)] + [{"q": "y", "answer": 4}, {"q": "z", "answer": None}, {}]
    assert mixed(rows) == [
        Mixed(
            "answer",
            {"text": 30, "whole number": 1, "missing": 2},
            {"text": tuple(range(1, 11)), "whole number": (31,)},
        )
    ]


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        (["a", "b", None], None),
        ([1, 2.5], None),
        ([None, None], None),
        ([1, "1"], ["whole number", "text"]),
        ([1, 2, 2.5, "1.10"], ["whole number", "decimal number", "text"]),
        ([True, 1], ["true or false", "whole number"]),
        (["a", ["a"]], ["text", "list"]),
        (["a", {"b": 1}], ["text", "object"]),
    ],
)
def test_what_counts_as_mixed(values: list[Any], kinds: list[str] | None) -> None:
    found = mixed([{"a": value} for value in values])
    assert [list(each.counts) for each in found] == ([] if kinds is None else [kinds])


def test_fields_of_objects_count_by_their_dotted_names() -> None:
    found = mixed([{"reward_model": {"ground_truth": "4", "style": "rule"}}, {"reward_model": {"ground_truth": 4}}])
    assert [each.column for each in found] == ["reward_model.ground_truth"]


def test_rows_that_each_bring_other_keys_are_bounded() -> None:
    rows: list[dict[str, Any]] = [{f"k{n}": 1} for n in range(MOST_COLUMNS + 10)]
    assert len(mixed([*rows, *(dict.fromkeys(row, "x") for row in rows)])) == MOST_COLUMNS
