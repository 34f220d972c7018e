"""Rows as chat messages: the forms of a prompt, the system prompt, the template, earlier turns, the gold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.config import DatasetSettings
from grpo_studio.data import ColumnMapping, Sample, to_sample
from grpo_studio.data.prompt_cell import read_prompt
from grpo_studio.shown import shown

MAPPING = ColumnMapping(("prompt", "answer"), "prompt", "answer")
USER = {"role": "user", "content": "1 + 1"}
EARLIER = [{"role": "user", "content": "0 + 1"}, {"role": "assistant", "content": "1"}]
SYSTEM = {"role": "system", "content": "Be brief."}


def sample(value: Any, mapping: ColumnMapping = MAPPING, answer: Any = "2", **settings: Any) -> Sample:
    made = to_sample({"prompt": value, "answer": answer}, DatasetSettings.model_validate(settings), mapping, 3)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("1 + 1", [USER]),
        (" 1 + 1\n", [{"role": "user", "content": " 1 + 1\n"}]),
        (5, [{"role": "user", "content": "5"}]),
        ([USER], [USER]),
        (USER, [USER]),
        ([SYSTEM, *EARLIER, USER], [SYSTEM, *EARLIER, USER]),
        ([SYSTEM, SYSTEM, USER], [SYSTEM, USER]),
        ([SYSTEM, {"role": "developer", "content": "Be kind."}, USER], [{"role": "system", "content": "Be brief.\n\nBe kind."}, USER]),
        ([{"role": "system", "content": " "}, USER], [USER]),
        ([{"role": " USER ", "content": "1 + 1", "name": "Ann"}], [USER]),
        ([{"from": "system", "value": "Be brief."}, {"from": "human", "value": "0 + 1"}, {"from": "gpt", "value": "1"}, {"from": "human", "value": "1 + 1"}], [SYSTEM, *EARLIER, USER]),
        ([{"role": None, "content": None, "from": "human", "value": "1 + 1"}], [USER]),
        ([{"role": "user", "content": [{"type": "text", "text": "1 +"}, {"type": "text", "text": " 1"}]}], [USER]),
        ([{"role": "user", "content": {"type": "text", "text": "1 + 1"}}], [USER]),
        ([{"role": "user", "content": ["1 +", " 1"]}], [USER]),
        ([{"type": "text", "text": "1 + 1"}], [USER]),
        ({"role": ["system", "user"], "content": ["Be brief.", "1 + 1"]}, [SYSTEM, USER]),
        ({"from": ["human"], "value": ["1 + 1"]}, [USER]),
        (json.dumps([SYSTEM, *EARLIER, USER]), [SYSTEM, *EARLIER, USER]),
        (" " + json.dumps([{"value": "1 + 1", "from": "human"}], indent=1), [USER]),
        ((USER,), [USER]),
    ],
    ids=shown,
)  # fmt: skip
def test_the_forms_of_a_prompt(value: Any, messages: list[dict[str, str]]) -> None:
    made = sample(value)
    assert list(made.messages) == messages
    assert made.question == messages[-1]["content"]
    assert list(read_prompt(value).before) == messages[:-1]


@pytest.mark.parametrize(
    ("value", "system", "expected"),
    [
        ([SYSTEM, USER], "new", [{"role": "system", "content": "new"}, USER]),
        ([SYSTEM, SYSTEM | {"content": "more"}, USER], "new", [{"role": "system", "content": "new"}, USER]),
        ([*EARLIER, USER], "new", [{"role": "system", "content": "new"}, *EARLIER, USER]),
        ("1 + 1", "new", [{"role": "system", "content": "new"}, USER]),
        ([SYSTEM, USER], None, [SYSTEM, USER]),
        ([SYSTEM, USER], "", [USER]),
        ("1 + 1", "", [USER]),
    ],
)
def test_the_system_prompt_of_the_settings_replaces_the_one_of_the_data(
    value: Any, system: str | None, expected: list[dict[str, str]]
) -> None:
    assert list(sample(value, system_prompt=system).messages) == expected


def test_the_template_stands_around_the_last_question_alone() -> None:
    made = sample([SYSTEM, *EARLIER, USER], prompt_template="What is {prompt}?")
    assert made.question == "What is 1 + 1?"
    assert list(made.messages) == [SYSTEM, *EARLIER, {"role": "user", "content": "What is 1 + 1?"}]
    assert sample("1 + 1", prompt_template="{prompt} Again: {prompt}").question == "1 + 1 Again: 1 + 1"


@given(st.text("{}prompt\\$%\n é\U0001f600", min_size=1).map(lambda text: f"q{text}"))
def test_any_question_survives_the_template(question: str) -> None:
    assert sample(question, prompt_template="<{prompt}>").question == f"<{question}>"


@pytest.mark.parametrize(
    "question", ["{prompt}", "say {prompt} {prompt}", "{", "{0} %s {x!r}", r"\1 \g<0>", "}{", "$prompt"]
)
def test_braces_in_a_question_survive(question: str) -> None:
    assert sample(question, prompt_template="Q: {prompt} {curly}").question == f"Q: {question} {{curly}}"


@pytest.mark.parametrize("gold", ["007", "1.10", "None", "N/A", "true", 7, 1.5, True, None, ["a", "b"], "#### 12", ""])
def test_the_gold_keeps_its_form_and_type(gold: Any) -> None:
    made = sample("q", answer=gold)
    assert (made.answer, type(made.answer)) == (gold, type(gold))
    assert made.columns == {"prompt": "q", "answer": gold}
    assert made.row == 3


def test_fields_of_mappings_by_dotted_names() -> None:
    row = {
        "prompt": [USER],
        "reward_model": {"ground_truth": "2"},
        "extra_info": {"question": "1 + 1", "answer": "#### 2"},
    }
    mapping = ColumnMapping(("prompt",), "extra_info.question", "reward_model.ground_truth")
    made = to_sample(row, DatasetSettings(), mapping)
    assert made is not None
    assert (made.question, made.answer) == ("1 + 1", "2")
    assert made.columns == {
        "dataset_prompt": [USER],
        **{name: row[name] for name in ("reward_model", "extra_info")},
        "answer": "2",
    }


def test_a_column_whose_own_name_has_a_dot_wins() -> None:
    mapping = ColumnMapping(("a.b",), "a.b", None)
    made = to_sample({"a.b": "whole", "a": {"b": "part"}}, DatasetSettings(), mapping)
    assert made is not None
    assert made.question == "whole"


def test_a_row_that_lacks_the_gold_has_none() -> None:
    made = to_sample({"prompt": "q"}, DatasetSettings(), MAPPING)
    assert made is not None
    assert (made.answer, made.columns) == (None, {"prompt": "q", "answer": None})
