from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.verifiers import problems_of
from grpo_studio.verifiers.discovery import load_file

[SPEC] = load_file(Path(__file__).resolve().parents[3] / "rewards" / "repetition_penalty.py")


def score(text: str, **params: Any) -> float:
    value = SPEC.function(text, **params).score
    assert isinstance(value, float)
    return value


@pytest.mark.parametrize("text", ["", "yes", "one two three four", " \n ", "one two three four five six seven"])
def test_short_and_fresh_texts_cost_nothing(text: str) -> None:
    assert score(text) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "I do not know. " * 100,
        "我不知道" * 100,
        "わかりません" * 100,
        "ฉันไม่รู้" * 100,
        "ha" * 500,
        "!" * 500,
        "No no NO nO " * 100,
        "= - " * 100,
    ],
)
def test_a_loop_in_any_script_costs_nearly_all(text: str) -> None:
    assert -1.0 <= score(text) < -0.9


def test_the_share_is_that_of_repeated_runs() -> None:
    # ab bc ca ab bc: three distinct of five
    assert score("a b c a b c", ngram=2) == pytest.approx(-0.4)
    assert score("a b c a b c", ngram=2, max_penalty=-0.5) == pytest.approx(-0.2)
    assert score("a a a a", ngram=1) == pytest.approx(-0.75)


def test_more_repetition_costs_more() -> None:
    fresh = " ".join(f"word{number}" for number in range(40))
    costs = [score(fresh + " and so on" * times, ngram=3) for times in range(0, 30, 5)]
    assert costs[0] == 0.0
    assert costs == sorted(costs, reverse=True)
    assert len(set(costs)) == len(costs)


@given(st.text(), st.integers(1, 6))
def test_any_text_stays_in_range(text: str, ngram: int) -> None:
    assert -1.0 <= score(text, ngram=ngram) <= 0.0


@pytest.mark.parametrize("params", [{"ngram": 0}, {"ngram": -1}, {"max_penalty": 0.5}])
def test_a_bad_setting_is_one_message_at_set_up(params: dict[str, Any]) -> None:
    assert len(problems_of(SPEC, params, [])) == 1
