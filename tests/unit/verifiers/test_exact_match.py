"""What the whole answer is and when it is the gold text. Each row is a kind."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.verifiers.discovery import load_file

[SPEC] = load_file(Path(__file__).resolve().parents[3] / "rewards" / "exact_match.py")
exact_match = SPEC.function


@pytest.mark.parametrize(
    ("completion", "answer", "expected"),
    [
        ("Paris", "Paris", 1.0),
        (" Paris\n", "Paris", 1.0),
        ("Paris", " Paris ", 1.0),
        ("New  York\nCity", "New York City", 1.0),
        ("Paris.", "Paris", 1.0),
        ("Paris!", "Paris", 1.0),
        ("**Paris**", "Paris", 1.0),
        ('"Paris."', "Paris", 1.0),
        ("“Paris”", "Paris", 1.0),
        ("`Paris`", "Paris", 1.0),
        ("Ｐａｒｉｓ", "Paris", 1.0),
        ("New\u00a0York", "New York", 1.0),
        ("北京。", "北京", 1.0),
        ("−5", "-5", 1.0),
        ("<think>Lyon?</think>Paris", "Paris", 1.0),
        ("So: <answer>Paris</answer>", "Paris", 1.0),
        ("It is \\boxed{Paris}.", "Paris", 1.0),
        ("<answer>\\boxed{\\text{Paris}}</answer>", "Paris", 1.0),
        ("Paris", "\\boxed{Paris}", 1.0),
        ("?", "?", 1.0),
        ("__init__", "__init__", 1.0),
        ("paris", "Paris", 0.0),
        ("NewYork", "New York", 0.0),
        ("The capital is Paris", "Paris", 0.0),
        ("Paris, France", "Paris", 0.0),
        ("Pari", "Paris", 0.0),
        ("17", "7", 0.0),
        ("7", "17", 0.0),
        ("5", ".5", 0.0),
        ("5!", "5", 0.0),
        ("5%", "5", 0.0),
        ("-5", "5", 0.0),
        ("10²", "102", 0.0),
        ("init", "__init__", 0.0),
        ("C", "C++", 0.0),
        ("<think>Paris</think>", "Paris", 0.0),
        ("<think>Paris", "Paris", 0.0),
        ("Paris <answer></answer>", "Paris", 0.0),
        ("Paris \\boxed{", "Paris", 0.0),
        ("Paris \\boxed{}", "Paris", 0.0),
        ("", "Paris", 0.0),
        ("   ", "Paris", 0.0),
        (".", "Paris", 0.0),
        ("True", True, 1.0),
        ("true", True, 1.0),
        ("False", True, 0.0),
        ("4", 4, 1.0),
        ("4", 4.0, 1.0),
        ("4.0", 4, 0.0),
        ("four", ["4", "four"], 1.0),
        ("five", ["4", "four"], 0.0),
        ("", "", None),
        ("x", "", None),
        ("x", " \n", None),
        ("x", None, None),
        ("x", [], None),
        ("x", {"text": "x"}, None),
        ("nan", float("nan"), None),
        ("x", "<think>x</think>", None),
        ("x", "\\boxed{x", None),
    ],
)
def test_the_whole_answer_is_the_gold(completion: str, answer: Any, expected: float | None) -> None:
    assert exact_match(completion, answer).score == expected


@pytest.mark.parametrize(
    ("completion", "answer", "options", "expected"),
    [
        ("PARIS", "Paris", {"ignore_case": True}, 1.0),
        ("London", "Paris", {"ignore_case": True}, 0.0),
        ("STRASSE", "Straße", {"ignore_case": True}, 1.0),
        ("NewYork", "New York", {"ignore_space": True}, 1.0),
        ("f( x )", "f(x)", {"ignore_space": True}, 1.0),
        ("f( y )", "f(x)", {"ignore_space": True}, 0.0),
        ("  ", "x", {"ignore_space": True}, 0.0),
        ("Paris.", "Paris", {"strip_punctuation": False}, 0.0),
        ("Paris.", "Paris.", {"strip_punctuation": False}, 1.0),
    ],
)
def test_options_are_asked_for(completion: str, answer: str, options: dict[str, bool], expected: float) -> None:
    assert exact_match(completion, answer, **options).score == expected


@pytest.mark.parametrize(
    "gold", ["Paris", "Paris.", " a  b ", 4, 4.0, True, ["", "x"], "\\boxed{x}", "?", "**", '"', "no \\boxed{x} y"]
)
def test_the_gold_itself_is_right(gold: Any) -> None:
    assert SPEC.ideal is not None
    ideal = SPEC.ideal(answer=gold, **SPEC.params)
    assert ideal is not None
    assert exact_match(ideal, gold).score == 1.0


@pytest.mark.parametrize("gold", ["", None, {}, [], "<think>x"])
def test_a_gold_that_cannot_be_read_has_no_ideal(gold: Any) -> None:
    assert SPEC.ideal is not None
    assert SPEC.ideal(answer=gold, **SPEC.params) is None


@pytest.mark.parametrize("text", ['"', "*", "a ", ".", "!", " ", "<answer>", "<think>", "\\boxed{"])
def test_every_scan_is_linear(text: str) -> None:
    """About 200 kB each; a quadratic scan takes minutes."""
    began = time.process_time()
    exact_match(text * (200_000 // len(text)), "7")
    assert time.process_time() - began < 1.5
