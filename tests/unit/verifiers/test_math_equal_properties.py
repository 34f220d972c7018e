"""What holds for every text, and for every value that is changed."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grpo_studio.verifiers import discover

SPEC = discover([Path(__file__).resolve().parents[3] / "rewards"]).get("math_equal")
math_equal = SPEC.function
QUICK = settings(max_examples=150, deadline=None, derandomize=True)

WRITTEN = r"""\frac \sqrt \boxed \text \left \right \pm \le \in \cup \infty \pi \sin \log \sum_{k=1}^ \begin{pmatrix} \end{pmatrix}
    \mathrm \circ \{ \} \\ { } ( ) [ ] ^ _ = < > + - * / ! | : ; , . % $ & 0 1 2 30 4.5 1,250 1e5 x y e i n and or cm
    percent yes C answer #### <think> </think> <answer> ½ 答案 é"""
PIECES = st.sampled_from([*WRITTEN.split(), " ", "\n", "the answer is "])
MATHS = st.lists(PIECES, max_size=30).map("".join)
TEXTS = st.one_of(st.text(max_size=200), MATHS, MATHS.map(lambda text: f"\\boxed{{{text}}}"))
GOLDS = st.one_of(TEXTS, st.none(), st.integers(), st.floats(), st.booleans(), st.lists(TEXTS, max_size=3))
SMALL = st.integers(-999, 999)


def score(completion: str, gold: Any) -> float | None:
    value = math_equal(completion, gold).score
    assert value in (0.0, 1.0, None)
    return value


def boxed(text: str) -> str:
    return f"\\boxed{{{text}}}"


@QUICK
@given(TEXTS, GOLDS)
def test_any_text_is_judged_alike_twice_and_raises_nothing(completion: str, gold: Any) -> None:
    assert math_equal(completion, gold) == math_equal(completion, gold)
    score(completion, gold)


@QUICK
@given(GOLDS)
def test_a_readable_gold_has_an_ideal_answer_and_another_has_none(gold: Any) -> None:
    assert SPEC.ideal is not None
    ideal = SPEC.ideal(gold, **SPEC.params)
    assert score(ideal or "", gold) == (None if ideal is None else 1.0)


@QUICK
@given(st.integers(), st.integers())
def test_another_integer_never_scores(value: int, other: int) -> None:
    assert score(boxed(str(value)), value) == 1.0
    assert score(boxed(str(value)), str(other)) == float(value == other)
    assert score(boxed(f"{value:,}"), str(value)) == 1.0


@QUICK
@given(SMALL, st.integers(1, 99), SMALL, st.integers(1, 99))
def test_another_fraction_never_scores(top: int, low: int, other_top: int, other_low: int) -> None:
    gold = f"\\frac{{{other_top}}}{{{other_low}}}"
    expected = float(Fraction(top, low) == Fraction(other_top, other_low))
    for written in (f"\\frac{{{top}}}{{{low}}}", f"{top}/{low}", f"\\dfrac{{{3 * top}}}{{{3 * low}}}"):
        assert score(boxed(written), gold) == expected


@QUICK
@given(st.decimals(-1000, 1000, places=4), st.decimals(-1000, 1000, places=4))
def test_another_decimal_never_scores(value: Any, other: Any) -> None:
    assert score(boxed(str(value)), str(other)) == float(value == other)
    assert score(boxed(str(value)), str(Fraction(str(value)))) == 1.0


@QUICK
@given(st.floats(-1e12, 1e12))
def test_a_float_gold_matches_how_it_is_printed(value: float) -> None:
    assert score(boxed(str(value)), value) == 1.0
    assert score(boxed(str(value + 1 + abs(value))), value) == 0.0


@QUICK
@given(st.lists(SMALL, min_size=2, max_size=5, unique=True), st.randoms(), st.integers(0, 4), st.integers(1, 9))
def test_a_set_scores_in_any_order_and_not_with_another_item(items: list[int], chance: Any, at: int, step: int) -> None:
    shuffled = chance.sample(items, len(items))
    changed = [*items]
    changed[at % len(items)] += step
    assume(set(changed) != set(items))
    for form in ("{}", "\\{{{}\\}}"):
        gold = form.format(", ".join(map(str, items)))
        assert score(boxed(form.format(", ".join(map(str, shuffled)))), gold) == 1.0
        assert score(boxed(form.format(", ".join(map(str, changed)))), gold) == 0.0
        assert score(boxed(form.format(", ".join(map(str, items[1:])))), gold) == 0.0


@QUICK
@given(st.lists(SMALL, min_size=2, max_size=5), st.lists(SMALL, min_size=2, max_size=5))
def test_another_tuple_never_scores(items: list[int], others: list[int]) -> None:
    gold = f"({', '.join(map(str, others))})"
    assert score(boxed(f"({', '.join(map(str, items))})"), gold) == float(items == others)


@QUICK
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=4), st.integers(0, 3), st.integers(1, 5))
def test_a_polynomial_scores_in_either_form_and_not_with_another_root(roots: list[int], at: int, step: int) -> None:
    factors = "".join(f"(x-({root}))" for root in roots)
    coefficients = [1]
    for root in roots:
        coefficients = [a - root * b for a, b in zip([*coefficients, 0], [0, *coefficients], strict=True)]
    expanded = "+".join(f"({c})x^{{{len(roots) - power}}}" for power, c in enumerate(coefficients))
    changed = [*roots]
    changed[at % len(roots)] += step
    assume(sorted(changed) != sorted(roots))
    assert score(boxed(factors), expanded) == 1.0
    assert score(boxed("".join(f"(x-({root}))" for root in changed)), expanded) == 0.0


@QUICK
@given(st.integers(2, 60), st.integers(2, 60), SMALL, SMALL)
def test_a_surd_never_collapses(root: int, other: int, factor: int, other_factor: int) -> None:
    same = factor * abs(factor) * root == other_factor * abs(other_factor) * other
    assert score(boxed(f"{factor}\\sqrt{{{root}}}"), f"{other_factor}\\sqrt({other})") == float(same)


@pytest.mark.parametrize("gold", ["5", "\\frac{3}{8}", "(1,5)", "\\{1,2\\}", "x=4", "no solution", "C"])
@pytest.mark.parametrize(
    "probe",
    [
        "",
        "\\boxed{}",
        boxed(", ".join(map(str, range(101)))),
        boxed("x"),
        boxed("\\text{the right answer}"),
        boxed("A, B, C, D"),
        boxed("x = x"),
        boxed("0=0"),
        boxed("(-\\infty, \\infty)"),
        "<think><answer>\\boxed{</answer></think>",
    ],
)
def test_an_answer_that_fits_all_is_never_right(probe: str, gold: str) -> None:
    assert score(probe, gold) == 0.0
