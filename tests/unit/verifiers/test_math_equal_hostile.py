"""Texts that would stand for huge numbers, or cost a careless reader its time: judged in a real judge, none is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grpo_studio.verifiers.judge import Judge, JudgeRequest

REWARDS = Path(__file__).resolve().parents[3] / "rewards"
GOLDS = [
    "7",
    "x+1",
    r"\sqrt{2}",
    r"\{1,2\}",
    "(1,5)",
    "x=4",
    "no solution",
    r"10^{10^{11}}",
    "n!",
    "C",
    "4:30",
    r"[1,2]\cup[3,4]",
]


def boxed(text: str) -> str:
    return f"\\boxed{{{text}}}"


HOSTILE = {
    "a tower of powers": boxed("9^{9^{9^{9}}}"),
    "a typed tower": boxed("9^9^9^9^9"),
    "a tower in brackets": boxed(r"\frac{6^{\left(6^{\left(6^{\left(6^{6}\right)}\right)}\right)}-1}{5}"),
    "a tower of e": boxed("e^{e^{e^{e^{e}}}}"),
    "a tower of symbols": boxed("x^{x^{x^{x}}}"),
    "a negative tower": boxed("10^{-10^{10}}"),
    "a tower of factorials": boxed("((9!)!)!"),
    "many factorial signs": boxed("9" + "!" * 500),
    "a large factorial": boxed("99999999!"),
    "a long sum": boxed(r"\sum_{j=1}^{20000000}\frac{1}{j}"),
    "sums in a sum": boxed(r"\sum_{j=1}^{1000}\sum_{k=1}^{1000} jk"),
    "a sum of large powers": boxed(r"\sum_{j=1}^{1000} j^{1000}"),
    "a sum of sines": boxed(r"\sum_{j=1}^{1000}\sin(j+\sin(j+\sin(j)))+e^{600}"),
    "a long product": boxed(r"\prod_{j=1}^{1000} (j+1)^{50}"),
    "many large powers": boxed("*".join(["3^{10000}"] * 60)),
    "a large binomial": boxed(r"\binom{100000}{50000}"),
    "a large exponent": boxed("1e999999999"),
    "a large argument": boxed(r"\sin(10^{299})"),
    "a long number": boxed("9" * 5000),
    "a long number to a long power": boxed("9" * 900 + "^" + "9" * 900),
    "the power of a matrix": boxed(r"\begin{pmatrix}1&2\\3&4\end{pmatrix}^{99}"),
    "deep brackets": boxed("(" * 3000 + "2" + ")" * 3000),
    "rather deep brackets": boxed("(" * 39 + "2" + ")" * 39),
    "deep brackets in a union": boxed(r"[1,2]\cup" + "(" * 15 + "3,4" + ")" * 15),
    "deep roots": boxed(r"\sqrt{" * 250 + "2" + "}" * 250),
    "deep text": boxed(r"\text{" * 200 + "a" + "}" * 200),
    "deep divisions": boxed("1" + "/2" * 500),
    "many signs": boxed("-" * 1000 + "1"),
    "many bars": boxed("|" * 1000),
    "many braces": boxed("{" * 900 + "}" * 900),
    "many items": boxed(",".join(map(str, range(2000)))),
    "a long chain": boxed("1" + "<x" * 300),
    "a division by zero": boxed(r"\frac{1}{0}"),
    "zero to the zero": boxed("0^0"),
    "a root of index zero": boxed(r"\sqrt[0]{5}"),
    "a logarithm of zero": boxed(r"\ln 0"),
    "a logarithm in base one": boxed(r"\log_{1}(5)"),
    "a remainder by zero": boxed(r"5 \bmod 0"),
    "no number": boxed("nan"),
    "infinity less itself": boxed(r"\infty-\infty"),
    "20,000 unclosed boxes": "\\boxed{" * 20000,
    "20,000 boxes": "\\boxed{1}" * 20000,
    "NUL": boxed("1\x002"),
    "a surrogate": boxed("\ud8001"),
    "1 MB": "x" * 1_000_000,
    "1 MB in a box": boxed("1+" * 500_000 + "1"),
    "1 MB of dollars": "$1" * 500_000,
    "1 MB of white space": " " * 1_000_000,
    "1 MB of hashes": "#### " * 200_000,
    "1 MB of statements": "answer is " * 100_000,
    "1 MB of brackets": "\\[" * 500_000,
    "1 MB of think tags": "</think>" * 125_000,
    "1 MB of opened displays": "the answer is:\n" + "\\begin{align}" * 80_000,
    "1 MB of reasons": "the answer is 1" + " , as" * 200_000,
    "many aligned rows": boxed(r"\begin{align}" + "1\\\\" * 400 + r"\end{align}"),
    "displays never closed": boxed(r"\begin{align}" * 100),
    "many flipped symbols": boxed("+".join(rf"\sqrt{{{letter}^2}}" for letter in "abcdfghjklmnopqrstuvwxyz")),
    "many powers of ten": boxed("1" + "万" * 900),
    "combining marks": boxed("1" + "\u0301" * 1900),
    "emoji": boxed("\U0001f389" * 1900),
}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge([JudgeRequest("math_equal", {})], [REWARDS]) as judge:
        yield judge


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_judged_wrong_for_every_kind_of_gold(judge: Judge, name: str) -> None:
    [scores] = judge.score([HOSTILE[name]] * len(GOLDS), {"answer": GOLDS})
    assert {(score.value, score.outcome) for score in scores} == {(0.0, "ok")}


def test_as_gold_it_is_judged_too(judge: Judge) -> None:
    """A wrong answer never scores, whatever the gold."""
    golds = list(HOSTILE.values())
    [scores] = judge.score([boxed("12345")] * len(golds), {"answer": golds})
    assert {score.outcome for score in scores} <= {"ok", "abstained"}
    assert not any(score.value for score in scores)
