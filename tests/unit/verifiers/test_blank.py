from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.verifiers.blank import is_blank, is_space


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b", "\ufeff\u2060", "\u00a0\u3000"])
def test_space_is_blank(text: str) -> None:
    assert is_space(text)
    assert is_blank(text)


@pytest.mark.parametrize("text", ["\u3164", "\u2800", "\u115f\u1160", "\uffa0 ", "\ufe0f", "\u0301\u034f"])
def test_what_shows_nothing_is_blank_but_no_space(text: str) -> None:
    assert is_blank(text)
    assert not is_space(text)


@given(st.characters(categories=["L", "N", "P", "S"], exclude_characters="\u115f\u1160\u3164\uffa0\u2800"))
def test_a_character_with_a_picture_is_neither(character: str) -> None:
    assert not is_blank(f" {character}\u0301")
    assert not is_space(character)
