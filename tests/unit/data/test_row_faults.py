"""Every kind of row that cannot be used, or should be looked at; a sample is made of exactly the others."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any, get_args

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.config import DatasetSettings
from grpo_studio.data import ColumnMapping, to_sample
from grpo_studio.data.faults import FATAL, TITLES, DoubtfulKind
from grpo_studio.data.prompt_cell import read_prompt
from grpo_studio.data.row_faults import Fault, row_faults
from grpo_studio.shown import shown

MAPPING = ColumnMapping(("prompt",), "prompt", None)
DEFAULTS = DatasetSettings()
USER = {"role": "user", "content": "1 + 1"}
SAID = {"role": "assistant", "content": "2"}
SYSTEM = {"role": "system", "content": "Be brief."}


def faults(value: Any, **settings: Any) -> list[Fault]:
    return row_faults({"prompt": value}, DatasetSettings.model_validate(settings), MAPPING)


def kinds(value: Any, **settings: Any) -> list[str]:
    return [fault.kind for fault in faults(value, **settings)]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "missing_prompt"),
        (float("nan"), "missing_prompt"),
        (Decimal("nan"), "missing_prompt"),
        ("", "empty_prompt"),
        (" \t\r\n\u00a0", "empty_prompt"),
        ("\u200b\ufeff", "empty_prompt"),
        ([], "empty_prompt"),
        (True, "prompt_not_text"),
        ({"a": 1}, "prompt_not_text"),
        ({}, "prompt_not_text"),
        (["1 + 1"], "prompt_not_text"),
        ([1, 2], "prompt_not_text"),
        ([{"a": 1}], "prompt_not_text"),
        (b"1 + 1", "prompt_not_text"),
        (float("inf"), "prompt_not_text"),
        (10**5000, "prompt_not_text"),
        (datetime.date(2024, 1, 1), "prompt_not_text"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}], "prompt_not_text"),
        ([{"role": "user", "content": True}], "prompt_not_text"),
        ([{"type": "image"}], "prompt_not_text"),
        ([{"role": "user", "content": ""}], "empty_prompt"),
        ([{"role": "user", "content": " \n"}], "empty_prompt"),
        ([{"role": "user", "content": []}], "empty_prompt"),
        ([{"role": "user", "content": None}], "broken_chat"),
        ([{"role": "user"}], "broken_chat"),
        ([{"content": "1 + 1"}], "broken_chat"),
        ([{"role": None, "content": "1 + 1"}], "broken_chat"),
        ([{"role": 3, "content": "1 + 1"}], "broken_chat"),
        ([USER, "1 + 1"], "broken_chat"),
        ([None, USER], "broken_chat"),
        ([{"from": "human"}], "broken_chat"),
        ([{"role": "student", "content": "1 + 1"}], "odd_role"),
        ([{"role": "", "content": "1 + 1"}], "odd_role"),
        ([{"from": "alien", "value": "1 + 1"}], "odd_role"),
        ([SYSTEM], "no_user_turn"),
        ([USER, SAID], "assistant_last"),
        ([{"from": "human", "value": "1"}, {"from": "gpt", "value": "2"}], "assistant_last"),
        (json.dumps([USER, SAID]), "assistant_last"),
        ([USER, SYSTEM], "late_system_message"),
        ([SYSTEM, USER, SAID, SYSTEM, USER], "late_system_message"),
        ([USER, {"role": "tool", "content": "4"}], "tool_calls"),
        ([USER, {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}, USER], "tool_calls"),
        ([USER, {"role": "assistant", "content": "", "function_call": {"name": "f"}}, USER], "tool_calls"),
        ([{"from": "function_call", "value": "{}"}, {"from": "human", "value": "1"}], "tool_calls"),
        ([{"from": "observation", "value": "{}"}, {"from": "human", "value": "1"}], "tool_calls"),
        ([USER, {"role": "assistant", "content": [{"type": "tool_use", "id": "1"}]}, USER], "tool_calls"),
        ("1 + 1 \ud83d", "half_character"),
        ([SYSTEM | {"content": "\ude00"}, USER], "half_character"),
    ],
    ids=shown,
)
def test_rows_without_a_usable_prompt(value: Any, kind: str) -> None:
    found = faults(value)
    assert kind in [fault.kind for fault in found if fault.fatal]
    assert all(len(fault.message) < 160 and fault.message.isprintable() for fault in found)
    assert to_sample({"prompt": value}, DEFAULTS, MAPPING) is None
    read = read_prompt(value)
    assert (read.before, read.question) == ((), "")


@pytest.mark.parametrize(
    ("value", "kind", "question"),
    [
        (5, "number_prompt", "5"),
        (1.5, "number_prompt", "1.5"),
        (Decimal("1.10"), "number_prompt", "1.10"),
        ([{"role": "user", "content": 5}], "number_prompt", "5"),
        (
            "[{'role': 'user', 'content': '1'}\n {'role': 2}]",
            "chat_as_text",
            "[{'role': 'user', 'content': '1'}\n {'role': 2}]",
        ),
        ('[{"role": "user", "content": "1"}, 2]', "chat_as_text", '[{"role": "user", "content": "1"}, 2]'),
        ('[{"role": "user", "content": "cut', "chat_as_text", '[{"role": "user", "content": "cut'),
        ([SYSTEM, SYSTEM | {"content": "Be kind."}, USER], "two_system_messages", "1 + 1"),
        ([SYSTEM, SYSTEM, USER], "two_system_messages", "1 + 1"),
        ([USER, USER], "same_role_twice", "1 + 1"),
        ([USER, {"role": "assistant", "content": ""}, USER], "empty_turn", "1 + 1"),
        ("a\x00b", "control_characters", "a\x00b"),
        ("a\x1b[31mb", "control_characters", "a\x1b[31mb"),
        ("a\u202eb", "control_characters", "a\u202eb"),
        ("na\ufffdve", "broken_encoding", "na\ufffdve"),
        ("call <tool_call>{}</tool_call>", "tool_marks", "call <tool_call>{}</tool_call>"),
        ("[TOOL_CALLS] []", "tool_marks", "[TOOL_CALLS] []"),
        ([{"role": "user", "content": "see <tool_response>4"}], "tool_marks", "see <tool_response>4"),
        ("<|im_start|>user\n1 + 1<|im_end|>", "chat_marks", "<|im_start|>user\n1 + 1<|im_end|>"),
        ("[INST] 1 + 1 [/INST]", "chat_marks", "[INST] 1 + 1 [/INST]"),
        ("{question}", "unfilled_prompt", "{question}"),
        ("{{ prompt }}", "unfilled_prompt", "{{ prompt }}"),
    ],
    ids=shown,
)
def test_rows_that_are_used_and_told(value: Any, kind: str, question: str) -> None:
    found = faults(value)
    assert [(fault.kind, fault.fatal) for fault in found] == [(kind, False)]
    assert len(found[0].message) < 160
    assert found[0].message.replace("\ufffd", "").isprintable()
    sample = to_sample({"prompt": value}, DEFAULTS, MAPPING)
    assert sample is not None
    assert sample.question == question


@pytest.mark.parametrize(
    "value",
    [
        "1 + 1",
        "  padded\n",
        "a < b and [1, 2]",
        "Wörter, 数字, سؤال, \U0001f600, e\u0301",
        "[1, 2, 3]",
        '[{"name": "Ann", "age": 3}] How many entries has this JSON?',
        '[{"from": "Paris", "to": "Rome"}]',
        "[" * 10_000,
        '{"role": "user", "content": "a question about this"}',
        "What does <think> mean? And {prompt}?",
        [USER],
        [SYSTEM, USER, SAID, USER],
        [{"role": "User", "content": "1"}],
        [{"role": "developer", "content": "Be brief."}, USER],
        [{"from": "human", "value": "1"}, {"from": "gpt", "value": "2"}, {"from": "human", "value": "3"}],
        [{"role": "user", "content": [{"type": "text", "text": "1 +"}, {"type": "text", "text": " 1"}]}],
        [{"type": "text", "text": "1 + 1"}],
        [{"role": "user", "content": "1 + 1", "tool_calls": None, "function_call": []}],
        [{"role": "user", "content": "1 + 1", "name": "Ann", "weight": 1}],
        {"role": ["user", "assistant", "user"], "content": ["1", "2", "3"]},
        json.dumps([SYSTEM, USER]),
    ],
    ids=shown,
)
def test_sound_rows_have_no_fault(value: Any) -> None:
    assert faults(value) == []


@pytest.mark.parametrize(
    ("template", "value", "kind"),
    [
        ("Question: {prompt}\nAnswer:", "Question: \nAnswer:", ["only_template"]),
        ("Question: {prompt}\nAnswer:", "Question:  Answer:\n", ["only_template"]),
        ("Question: {prompt}\nAnswer:", "Question: {prompt}\nAnswer:", ["only_template"]),
        ("Question: {prompt}\nAnswer:", [{"role": "user", "content": "Question: Answer:"}], ["only_template"]),
        ("Question: {prompt}\nAnswer:", "Question: 1 + 1\nAnswer:", []),
        ("{prompt}", "{prompt}", ["unfilled_prompt"]),
        ("{prompt}", "1 + 1", []),
        ("{prompt}", "", ["empty_prompt"]),
    ],
)  # fmt: skip
def test_text_that_is_only_the_template(template: str, value: Any, kind: list[str]) -> None:
    assert kinds(value, prompt_template=template) == kind


def test_a_row_without_the_column_has_no_prompt() -> None:
    assert [fault.kind for fault in row_faults({}, DEFAULTS, MAPPING)] == ["missing_prompt"]
    unmapped = ColumnMapping(("prompt",), None, None)
    assert [fault.kind for fault in row_faults({"prompt": "q"}, DEFAULTS, unmapped)] == ["missing_prompt"]


def test_each_kind_is_told_once() -> None:
    broken = [
        {"role": "a", "content": "x"},
        {"role": "b", "content": "x"},
        {"role": "c"},
        {"role": "d", "content": "x"},
    ]
    assert kinds(broken) == ["odd_role"]
    assert kinds([USER, None, {"role": "user"}, {"role": "tool", "content": "x"}]) == ["broken_chat", "tool_calls"]
    assert kinds("\x00 \ufffd <tool_call> <|im_end|>") == [
        "control_characters",
        "broken_encoding",
        "tool_marks",
        "chat_marks",
    ]


def test_every_kind_has_a_title() -> None:
    assert set(TITLES) == FATAL | set(get_args(DoubtfulKind))
    assert len(set(TITLES.values())) == len(TITLES)


def test_hostile_values_make_short_messages() -> None:
    for value in (
        {"<b>\n" * 1000: "x" * 10_000},
        [[["deep"] * 1000] * 1000],
        [{"role": "\x1b;; " * 5000, "content": "x"}],
    ):
        [fault] = faults(value)
        assert len(fault.message) < 160
        assert fault.message.isprintable()


ODD = 'aé 1<>{}[]"\\\n\x00\u200b\u202e\ufffd\ud800\U0001f600'
TEXTS = st.text(ODD, max_size=12) | st.sampled_from(["1 + 1", "", " ", "<tool_call>", "\ud800", "{prompt}", "Q: "])
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "system", "tool", "odd", "Human", None, 1]),
        "content": TEXTS | st.none() | st.integers() | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), max_size=2),
        "from": st.sampled_from(["human", "gpt", "system", "odd"]),
        "value": TEXTS,
        "tool_calls": st.sampled_from([None, [], [{"id": 1}]]),
    },
)  # fmt: skip
TURNS = st.builds(
    lambda role, content: {"role": role, "content": content}, st.sampled_from(["user", "assistant", "system"]), TEXTS
)
CHATS = st.lists(MESSAGES, max_size=4) | st.lists(TURNS, max_size=4)
CELLS = (
    TEXTS | st.none() | st.booleans() | st.integers() | st.floats() | CHATS | CHATS.map(lambda chat: json.dumps(chat))
)
SETTINGS = st.builds(
    lambda template, system: DatasetSettings(prompt_template=template, system_prompt=system),
    st.sampled_from([None, "{prompt}", "Q: {prompt}", "{prompt} again: {prompt}"]),
    st.sampled_from([None, "", "Be brief."]),
)


@hypothesis.settings(max_examples=200)
@given(CELLS, SETTINGS)
def test_a_sample_is_made_of_exactly_the_rows_without_a_fatal_fault(value: Any, settings: DatasetSettings) -> None:
    row = {"prompt": value}
    found = row_faults(row, settings, MAPPING)
    sample = to_sample(row, settings, MAPPING, 7)
    assert (sample is None) == any(fault.fatal for fault in found)
    assert all(fault.fatal == (fault.kind in FATAL) for fault in found)
    if sample is None:
        return
    roles = [message["role"] for message in sample.messages]
    assert roles[-1] == "user"
    assert roles.count("system") <= 1
    assert "system" not in roles[1:]
    assert sample.messages[-1]["content"] == sample.question
    assert sample.question.strip()
    assert sample.row == 7
    json.dumps(sample.messages, ensure_ascii=False).encode()  # no half of a character reaches a tokenizer
