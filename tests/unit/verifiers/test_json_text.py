from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.verifiers.json_text import DEEPEST, last_json, read_json, unfenced

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(PLAIN, st.sampled_from(["", " ", "\n\t"]))
def test_what_json_writes_is_read_back(value: Any, space: str) -> None:
    assert read_json(space + json.dumps(value) + space) == value


@given(st.text())
def test_any_text_is_read_as_json_has_it_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert read_json(text) == json.loads(text.strip("\ufeff \t\r\n"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("{'n': 3}", "not JSON"),
        ('{"n": 3,}', "not JSON"),
        ('{"n": 03}', "not JSON"),
        ("[NaN]", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("[1e400]", "beyond the range"),
        ("1e-400", "cannot hold"),
        ("-1e-400", "cannot hold"),
        ("1.00000000000000000001", "cannot hold"),
        ("9007199254740993.5", "cannot hold"),
        ("1e-99999999999999999999", "cannot hold"),
        ("[" + "9" * 5000 + "]", "4,300 digits"),
        ('{"a": 1, "a": 1}', "twice"),
        ('{"b": [{"a": 1, "a": 2}]}', "twice"),
        ("{} {}", "more after"),
        ("1 2", "more after"),
        ("[" * 20_000 + "]" * 20_000, "nested deeper"),
        ('{"a":' * 1000 + "1" + "}" * 1000, "nested deeper"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_json(text)


@pytest.mark.parametrize(
    ("text", "value"), [("0e-400", 0), ("0.0", 0), ("3.0", 3), ("1e300", 1e300), ("5e-324", 5e-324), ("10.5e1", 105)]
)
def test_numbers_that_a_double_holds(text: str, value: float) -> None:
    assert read_json(text) == value


def test_the_largest_that_are_read() -> None:
    assert read_json("9" * 4300) == int("9" * 4300)
    assert read_json("[" * DEEPEST + "]" * DEEPEST)
    assert read_json(json.dumps("[" * 5000)) == "[" * 5000


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ('```json\n{"n": 3}\n```', '{"n": 3}'),
        ("```\n3\n```", "3"),
        ("~~~JSON\n3\n~~~", "3"),
        ("````json\n3\n````\n", "3"),
        ("```json 3```", "3"),
    ],
)
def test_one_code_block_is_opened(text: str, body: str) -> None:
    assert unfenced(text).strip() == body


@pytest.mark.parametrize(
    "text",
    ["3", "```python\n3\n```", "```json\n3\n``` done", "```json\n3", "```json\n3\n```\n```json\n4\n```", "``````"],
)
def test_anything_else_stays_as_it_is(text: str) -> None:
    assert unfenced(text) == text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('First {"n": 1}, then {"n": 2}.', ({"n": 2}, '{"n": 2}')),
        ('See [1]: {"n": [1, {"m": 2}]}', ({"n": [1, {"m": 2}]}, '{"n": [1, {"m": 2}]}')),
        ("{not json} [1, 2] {", ([1, 2], "[1, 2]")),
        ("no brackets", None),
        ("{" * 50_000, None),
        ("[1" * 50_000, None),
    ],
)
def test_the_last_document_in_prose(text: str, found: object) -> None:
    assert last_json(text) == found
