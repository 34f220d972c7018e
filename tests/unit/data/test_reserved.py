"""Columns of a reserved name are renamed and told; all others keep their own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.config import DatasetSettings
from grpo_studio.data import map_columns, to_sample
from grpo_studio.data.reserved import RESERVED, rename_notes
from grpo_studio.verifiers.bench.given import columns_of
from grpo_studio.verifiers.contract import GIVEN_COLUMNS


def columns(row: dict[str, Any], *, first: list[dict[str, Any]] | None = None, **names: str) -> dict[str, Any]:
    """What verifiers get of a row, as a run passes it to its judge."""
    settings = DatasetSettings.model_validate({"columns": names})
    mapping = map_columns(first or [row], settings.columns, "rows.jsonl")
    sample = to_sample(row, settings, mapping, 1)
    assert sample is not None
    return {name: values[0] for name, values in columns_of([sample], [5]).items()}


@pytest.mark.parametrize("gold", ["answer", "solution", "ground_truth", "Gold", "Antwort", "target"])
def test_the_gold_is_passed_as_answer_whatever_its_name(gold: str) -> None:
    given = columns({"question": "q", gold: "4", "tests": ["a"]})
    assert given == {"question": "q", gold: "4", "tests": ["a"], "answer": "4", "prompt": "q", "completion_tokens": 5}


def test_a_nested_gold_is_passed_as_answer_and_stays_in_its_column() -> None:
    given = columns({"prompt": "q", "reward_model": {"ground_truth": "4"}})
    assert given["answer"] == "4"
    assert given["reward_model"] == {"ground_truth": "4"}


def test_what_a_run_gives_itself_is_not_overwritten() -> None:
    row = {
        "question": "q",
        "prompt": "a prefix",
        "solution": "4",
        "answer": "a letter",
        "completion_tokens": 9,
        "completion": "c",
    }
    given = columns(row, prompt="question", answer="solution")
    assert given == {
        "question": "q", "dataset_prompt": "a prefix", "solution": "4", "dataset_answer": "a letter",
        "dataset_completion_tokens": 9, "dataset_completion": "c", "answer": "4", "prompt": "q", "completion_tokens": 5,
    }  # fmt: skip


def test_an_answer_that_is_no_gold_is_not_passed_as_one() -> None:
    given = columns({"prompt": "q", "answer": "a letter"}, answer="-")
    assert "answer" not in given
    assert given["dataset_answer"] == "a letter"


def test_the_column_of_the_gold_may_have_any_reserved_name() -> None:
    given = columns({"prompt": "q", "completion": "4"}, answer="completion")
    assert (given["answer"], given["dataset_completion"]) == ("4", "4")


def test_the_prompt_may_be_in_the_column_answer() -> None:
    given = columns({"answer": "q", "question": "4"}, prompt="answer", answer="question")
    assert (given["prompt"], given["answer"], given["dataset_answer"]) == ("q", "4", "q")


def test_a_new_name_that_is_taken_gives_way() -> None:
    row = {"question": "q", "completion": 1, "dataset_completion": 2, "dataset_completion_2": 3}
    given = columns(row)
    assert (given["dataset_completion"], given["dataset_completion_2"], given["dataset_completion_3"]) == (2, 3, 1)


def test_reserved_names_that_come_late_are_renamed_too() -> None:
    first = [{"question": "q"}]
    assert columns({"question": "q", "completions": 1}, first=first)["dataset_completions"] == 1
    late = columns({"question": "q", "sample": 1, "dataset_sample": 2}, first=[{"question": "q", "sample": 1}])
    assert (late["dataset_sample"], late["dataset_sample_2"]) == (2, 1)


def test_every_rename_is_told() -> None:
    mapping = map_columns([{"question": "q", "completion": 1, "log_extra": 2}], DatasetSettings().columns, "rows")
    assert mapping.renamed == {"completion": "dataset_completion", "log_extra": "dataset_log_extra"}
    assert rename_notes(mapping.renamed) == [
        "the column completion is passed to verifiers as dataset_completion: a run gives its own 'completion' (the text that is judged)",
        "the column log_extra is passed to verifiers as dataset_log_extra: a run gives its own 'log_extra' (of the trainer itself)",
    ]


def test_all_that_the_contract_gives_is_reserved() -> None:
    assert set(GIVEN_COLUMNS) <= set(RESERVED)


@given(st.dictionaries(st.sampled_from([*RESERVED, "dataset_answer", "dataset_prompt", "a", "b"]), st.integers()))
def test_no_column_is_lost_or_overwritten(others: dict[str, int]) -> None:
    row = {**others, "the question": "q", "the gold": "g"}
    given = columns(row, prompt="the question", answer="the gold")
    own = {name: value for name, value in given.items() if name not in ("prompt", "answer", "completion_tokens")}
    assert sorted(map(str, own.values())) == sorted(map(str, row.values()))
    assert (given["prompt"], given["answer"]) == ("q", "g")
    assert all(own[name] == value for name, value in row.items() if name not in RESERVED)
