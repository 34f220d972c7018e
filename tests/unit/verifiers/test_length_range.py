from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grpo_studio.verifiers import problems_of
from grpo_studio.verifiers.discovery import load_file

[SPEC] = load_file(Path(__file__).resolve().parents[3] / "rewards" / "length_range.py")


@pytest.mark.parametrize(
    ("text", "params", "score"),
    [
        ("12345", {"min_chars": 5, "max_chars": 5}, 1.0),
        ("1234", {"min_chars": 5}, 0.0),
        ("123456", {"max_chars": 5}, 0.0),
        ("  12345\n\n", {"max_chars": 5}, 1.0),
        ("1" + " " * 50, {"min_chars": 5}, 0.0),
        ("", {"max_chars": 100}, 0.0),
        (" \n\t", {"max_chars": 100}, 0.0),
        ("", {"min_chars": 0}, 0.0),
        ("", {"min_chars": 0, "max_chars": 100}, 0.0),
        ("\u200b\u3164\u2800", {"max_chars": 100}, 0.0),
        (".", {"min_chars": 0, "max_chars": 100}, 1.0),
        ("", {"min_chars": 1}, 0.0),
        ("早上好", {"min_chars": 3, "max_chars": 3}, 1.0),
    ],
)
def test_characters(text: str, params: dict[str, Any], score: float) -> None:
    assert problems_of(SPEC, params, []) == []
    assert SPEC.function(text, **params).score == score


@pytest.mark.parametrize(
    ("tokens", "params", "score"),
    [
        (10, {"min_tokens": 10, "max_tokens": 10}, 1.0),
        (9, {"min_tokens": 10}, 0.0),
        (11, {"max_tokens": 10}, 0.0),
        (11, {"max_tokens": 11, "max_chars": 2}, 0.0),
        (None, {"max_tokens": 10}, None),
        (None, {"max_chars": 10}, 1.0),
    ],
)
def test_tokens(tokens: int | None, params: dict[str, Any], score: float | None) -> None:
    verdict = SPEC.function("text", tokens, **params)
    assert verdict.score == score
    assert bool(verdict.reason) == (score != 1.0)


def test_an_end_token_alone_is_an_empty_completion() -> None:
    assert SPEC.function("", 1, min_tokens=1).score == 0.0
    assert SPEC.function("", 1, min_tokens=0).score == 0.0
    assert SPEC.function("", None, min_tokens=0).score == 0.0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "at least one"),
        ({"min_chars": -1}, "0 or more"),
        ({"min_chars": 9, "max_chars": 8}, "swap"),
        ({"min_tokens": 9, "max_tokens": 8}, "swap"),
        ({"max_chars": "20"}, "must be"),
    ],
)
def test_bad_bounds_are_one_message_at_set_up(params: dict[str, Any], message: str) -> None:
    [problem] = problems_of(SPEC, params, [])
    assert message in problem
