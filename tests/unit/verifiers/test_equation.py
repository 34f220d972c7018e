from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.verifiers.equation import read_equation, solve

WHOLE = st.integers(0, 99).map(lambda value: (str(value), Fraction(value)))


def _combine(inner: st.SearchStrategy[tuple[str, Fraction]]) -> st.SearchStrategy[tuple[str, Fraction]]:
    def join(parts: tuple[tuple[str, Fraction], str, tuple[str, Fraction]]) -> tuple[str, Fraction]:
        (left, a), operator, (right, b) = parts
        value = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else Fraction(0)}[operator if b else "+"]
        return f"({left} {operator if b else '+'} {right})", value

    return st.tuples(inner, st.sampled_from("+-*/"), inner).map(join)


@given(st.recursive(WHOLE, _combine, max_leaves=8))
def test_values_are_exact(made: tuple[str, Fraction]) -> None:
    text, value = made
    assert read_equation(text).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1+2*3-4/2", 5),
        ("8-3-2", 3),
        ("8/4/2", 1),
        ("1/3*3", 1),
        ("-3+5", 2),
        ("2*-3", -6),
        ("-(2-5)", 3),
        ("0.1+0.2", Fraction(3, 10)),
        ("2 \u00d7 3 \u00f7 6", 1),
        ("5 \u2212 3", 2),
        ("2 x 3", 6),
        ("(1+1)x(2)", 4),
        (r"2 \times 3 \cdot 4 \div 6", 4),
        (r"\frac{6}{2} + 1", 4),
        (r"\left(1+2\right) \cdot \dfrac{4}{2}", 6),
        ("$[1+{2*3}]$", 7),
        ("12 = 12", 12),
    ],
)
def test_spellings(text: str, value: Fraction) -> None:
    assert read_equation(text).value == value


def test_the_numbers_and_what_is_stated() -> None:
    equation = read_equation("(7 + 5) * 2 = 24")
    assert equation.numbers == (7, 5, 2)
    assert (equation.value, equation.stated) == (24, 24)
    assert read_equation("24 = (7 + 5) * 2") == equation
    assert read_equation("7 + 5").stated is None
    assert read_equation("(7 + 5) * 2 == 24 \u2713") == equation


def test_of_a_chain_the_first_side_counts_and_any_other_value_shows() -> None:
    equation = read_equation("(7 + 5) * 2 = 12 * 2 = 24")
    assert (equation.value, equation.numbers, equation.stated) == (24, (7, 5, 2), 24)
    assert read_equation("1 + 1 = 2 * 1").numbers == (1, 1)
    assert read_equation("24 = 12 * 2 = 24").numbers == (24,)
    assert read_equation("7 + 5 = 12 = 24").stated == 24
    assert read_equation("7 + 5 = 24 = 12").stated == 24


@pytest.mark.parametrize(
    "text",
    [
        "",
        "=",
        "1 +",
        "* 2",
        "+ 2",
        "(1",
        "1)",
        "()",
        "1 2",
        "2(3)",
        "(1)(2)",
        "2**3",
        "2 * * 3",
        "2^3",
        "3!",
        "5 % 3",
        "7 // 2",
        "1e3",
        "1,000",
        "1.2.3",
        ".5",
        "x",
        "1 + a",
        "abs(1)",
        "1 = = 1",
        "1 ==== 1",
        "1 =",
        "1 + \u2713 1",
        "1/0",
        "1/(2-2)",
        r"\frac{1}2",
        "9" * 31,
        "1+" * 100 + "1",
        "1+" * 400 + "1",
        "(" * 100 + "1" + ")" * 100,
        "-" * 100 + "1",
        "__import__('os')",
    ],
)
def test_anything_else_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_equation(text)


@given(st.text() | st.text(alphabet="0123456789+-*/()=. "))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert read_equation(text).numbers


@given(st.lists(st.integers(1, 20).map(Fraction), min_size=2, max_size=4), st.integers(1, 40).map(Fraction))
def test_a_solution_is_one(numbers: list[Fraction], target: Fraction) -> None:
    if found := solve(numbers, target):
        equation = read_equation(found)
        assert equation.value == target
        assert sorted(equation.numbers) == sorted(numbers)


def test_a_puzzle_with_and_without_a_solution() -> None:
    assert solve([Fraction(3), Fraction(3), Fraction(8), Fraction(8)], Fraction(24)) is not None  # 8 / (3 - 8 / 3)
    assert solve([Fraction(1), Fraction(1)], Fraction(5)) is None
