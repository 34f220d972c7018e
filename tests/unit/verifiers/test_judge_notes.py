from __future__ import annotations

import pytest

from grpo_studio.verifiers.judge_notes import LONGEST_NOTE, cut, note
from grpo_studio.verifiers.judge_score import clean


class Odd(str):
    def __str__(self) -> str:
        raise SystemExit


@pytest.mark.parametrize("shorten", [cut, note, clean])
def test_every_note_has_the_same_longest_length(shorten: object) -> None:
    assert callable(shorten)
    assert shorten("x" * LONGEST_NOTE) == "x" * LONGEST_NOTE
    assert shorten("x" * (LONGEST_NOTE + 1)) == "x" * (LONGEST_NOTE - 1) + "…"


def test_any_value_makes_a_note() -> None:
    assert note(Odd("text")) == "text"
    assert type(note(Odd("text"))) is str
    assert note(5) == "5"
