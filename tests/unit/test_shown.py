"""Values of a data set in messages: one short line that shows what it holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.shown import shown, shown_name

TEXTS = st.text("aé ;\n\t'\\\x00\x85\u2028\u202e\ud800\U0001f600\U000e0001", max_size=40)
NESTED: list[Any] = []
for _ in range(5000):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (" a\n\tb ", "a b"),
        ("a\x00b\x1b[0m\x7f", "a\\x00b\\x1b[0m\\x7f"),
        ("a\u202eb\u200b\ufeff", "a\\u202eb\\u200b\\ufeff"),
        ("\ud83d", "\\ud83d"),
        ("wrong; fix", "wrong;fix"),
        ("wrong;\n fix", "wrong;fix"),
        ("数字 é 😀", "数字 é 😀"),
        ("x" * 100, "x" * 59 + "…"),
        (5, "5"),
        (None, "None"),
        ([1, "a; b"], "[1, 'a;b']"),
        (10**5000, "an integer of over 4,300 digits"),
        ({"a": 10**5000}, "an integer of over 4,300 digits"),
    ],
    ids=range(14),
)
def test_shown(value: Any, text: str) -> None:
    assert shown(value) == text


def test_what_is_deep_or_long_is_cut() -> None:
    for value in (NESTED, ["x" * 10_000] * 10_000, {str(number): number for number in range(10_000)}):
        assert len(shown(value, 80)) <= 80


@given(
    st.text(st.characters(codec=None), max_size=40)
    | st.recursive(st.text(" ;\n\x00", max_size=5), st.lists, max_leaves=5)
)
def test_it_is_one_printable_line_without_the_mark_of_a_fix(value: Any) -> None:
    text = shown(value, 20)
    assert text.isprintable()
    assert "; " not in text
    assert len(text) <= 20


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("answer", "answer"),
        ("extra_info.answer", "extra_info.answer"),
        ("final answer", "final answer"),
        ("Lösung", "Lösung"),
        ("a, b", "'a, b'"),
        (" padded", "'padded'"),
        ("", "''"),
        ("<b>", "'<b>'"),
        ("n" * 50, "'" + "n" * 39 + "…'"),
    ],
)
def test_names_are_quoted_where_they_could_mislead(name: str, text: str) -> None:
    assert shown_name(name) == text
