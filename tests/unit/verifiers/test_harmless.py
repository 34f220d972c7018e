from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.verifiers.harmless import calls_nothing, is_arithmetic


@pytest.mark.parametrize(
    "text",
    [
        "1 + 2*(3 - 4)/5",
        "-x**2 + 3*x - 1",
        "exp(2*x)/2 + C",
        "sqrt(2)*sin(x)**2",
        "x**(1/2)",
        "2**-3",
        "(x**2)**2",
        "1.5",
    ],
)
def test_arithmetic(text: str) -> None:
    assert is_arithmetic(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "__import__('os').system('true')",
        "x.y",
        "f(x)",
        "open(x)",
        "sqrt(*x)",
        "sqrt(x=1)",
        "[1]",
        "'a'*9",
        "x if x else y",
        "lambda: x",
        "x = 1",
        "x, y",
        "x == y",
        "1j",
        "9**9**9",
        "9**65",
        "9**(8*9)",
        "((9**9)**9)**9",
        "1" * 41,
        "x_1",
        "(" * 2000,
        "-" * 1999,
        "a+" * 1500 + "a",
        "2 x",
        "\x00",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    assert not is_arithmetic(text)


@pytest.mark.parametrize("text", ["[['_', 'Q'], [1, -2.5]]", "0 1\n1 0", "ABC", ""])
def test_plain_data_calls_nothing(text: str) -> None:
    assert calls_nothing(text)


@pytest.mark.parametrize("text", ["f()", "a*9", "a := 1", "{1}", "1 if x else 2;", "a=b", "[x for x in y] + z", "`"])
def test_what_could_do_more_is_refused(text: str) -> None:
    assert not calls_nothing(text)


@given(st.text(alphabet="[]'\",.-_ aA1\n", max_size=40))
def test_what_calls_nothing_can_be_evaluated_without_effect(text: str) -> None:
    assert calls_nothing(text)
    names: dict[str, object] = {"__builtins__": {}}
    with contextlib.suppress(Exception):
        eval(text, names)
    assert set(names) == {"__builtins__"}
