from __future__ import annotations

from pathlib import Path

import pytest

from grpo_studio.verifiers import problems_of
from grpo_studio.verifiers.discovery import load_file

[SPEC] = load_file(Path(__file__).resolve().parents[3] / "rewards" / "length_target.py")


@pytest.mark.parametrize(
    ("length", "score"), [(100, 1.0), (50, 0.5), (150, 0.5), (0, 0.0), (200, 0.0), (5000, 0.0), (99, 0.99)]
)
def test_the_score_falls_in_a_straight_line(length: int, score: float) -> None:
    assert SPEC.function("text", length, tokens=100).score == pytest.approx(score)


def test_the_closer_the_better_on_both_sides() -> None:
    scores = [SPEC.function("text", length, tokens=30, width=20).score for length in range(61)]
    assert scores == sorted(scores[:31]) + sorted(scores[31:], reverse=True)
    assert len(set(scores[10:31])) == 21


def test_silence_is_never_near_the_target() -> None:
    assert SPEC.function(" \n", 1, tokens=1, width=1000).score == 0.0


def test_without_a_count_it_abstains() -> None:
    verdict = SPEC.function("text", tokens=10)
    assert (verdict.score, bool(verdict.reason)) == (None, True)


@pytest.mark.parametrize("params", [{}, {"tokens": 0}, {"tokens": -3}, {"tokens": 10, "width": 0}])
def test_a_bad_setting_is_one_message_at_set_up(params: dict[str, int]) -> None:
    assert len(problems_of(SPEC, params, [])) == 1
