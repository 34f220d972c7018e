from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.verifiers import problems_of
from grpo_studio.verifiers.discovery import load_file

[SPEC] = load_file(Path(__file__).resolve().parents[3] / "rewards" / "soft_overlong.py")


def equation_13(length: int, longest: int, cache: int) -> Fraction:
    """DAPO (arXiv 2503.14476), equation 13, case by case."""
    if length <= longest - cache:
        return Fraction(0)
    if length <= longest:
        return Fraction(longest - cache - length, cache)
    return Fraction(-1)


@given(st.integers(0, 30_000), st.integers(1, 20_480), st.data())
def test_it_is_equation_13_of_dapo(length: int, longest: int, data: st.DataObject) -> None:
    cache = data.draw(st.integers(1, longest))
    score = SPEC.function("text", length, max_length=longest, cache=cache).score
    assert score == pytest.approx(float(equation_13(length, longest, cache)))


@pytest.mark.parametrize(
    ("length", "score"), [(0, 0.0), (16384, 0.0), (16385, -1 / 4096), (18432, -0.5), (20480, -1.0), (20481, -1.0)]
)
def test_the_settings_of_the_paper(length: int, score: float) -> None:
    assert SPEC.function("text", length, max_length=20480, cache=4096).score == score


def test_without_a_count_it_abstains() -> None:
    assert SPEC.function("text", max_length=10, cache=2).score is None


@pytest.mark.parametrize(("longest", "cache"), [(0, 1), (-5, 1), (100, 0), (100, 101), (100, -1)])
def test_a_bad_setting_is_one_message_at_set_up(longest: int, cache: int) -> None:
    assert len(problems_of(SPEC, {"max_length": longest, "cache": cache}, [])) == 1
