"""Arithmetic as people write it, parsed and computed exactly, never run. Standard library only.

Known are + - * / (with the signs that print uses for them, x, \\times, \\cdot, \\div and \\frac{}{}), brackets of any
kind and a minus in front of a number or bracket. Powers, names, implied multiplication (`2(3)`) and anything else are
refused, and so is a text that is too long to be a person's equation: no text can make this slow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

LONGEST = 600
MOST_NUMBERS = 60
_DEEPEST = 60
_TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]{1,30}(?:\.[0-9]{1,30})?)(?![0-9.])|(?P<mark>\\frac|[-+*/()=]))")
_SPELLINGS = (
    (re.compile(r"\\(?:left|right)(?![A-Za-z])|\\[,;:! ]|\\[()\[\]]|\$"), " "),
    (re.compile(r"\\[dt]frac"), r"\\frac"),
    (re.compile(r"\\times|\\cdot|[\u00d7\u00b7\u22c5\u2217\u2715\u2716]|(?<=[0-9)\]} ])[xX](?=[0-9(\[{ -])"), "*"),
    (re.compile(r"\\div|[\u00f7\u2215\u2044]"), "/"),
    (re.compile(r"[\u2010-\u2013\u2212]"), "-"),
    (re.compile(r"[\[{]"), "("),
    (re.compile(r"[\]}]"), ")"),
    (re.compile(r"(?<!=)={2,3}(?!=)"), "="),
    (re.compile(r"\s*[\u2705\u2611\u2713\u2714]\ufe0f?\s*\Z"), ""),
)


@dataclass(frozen=True)
class Equation:
    """The value of an expression, the numbers that stand in it, and what an equals sign says it is (or None)."""

    value: Fraction
    numbers: tuple[Fraction, ...]
    stated: Fraction | None = None


def read_equation(text: str) -> Equation:
    """Parse `expression`, `expression = number`, `number = expression` or a chain of equal sides, of which the first
    counts. Raises ValueError with the reason.
    """
    text = text.strip()
    if len(text) > LONGEST:
        raise ValueError(f"an equation of over {LONGEST} characters")
    for spelling, plain in _SPELLINGS:
        text = spelling.sub(plain, text)
    tokens = _tokens(text)
    sides = _split(tokens)
    first, *others = [_Parser(side).parse() for side in sides]
    if not others:
        return first
    if len(others) == 1 and len(first.numbers) == 1 < len(others[0].numbers):
        first, others = others[0], [first]
    unequal = (side.value for side in others if side.value != first.value)
    return Equation(first.value, first.numbers, next(unequal, others[-1].value))


def solve(numbers: Sequence[Fraction], target: Fraction) -> str | None:
    """An expression that uses each number once and has the target as its value; None when there is none."""
    return _solve([(value, str(value)) for value in numbers], target, set())


def _solve(parts: list[tuple[Fraction, str]], target: Fraction, seen: set[tuple[Fraction, ...]]) -> str | None:
    if len(parts) == 1:
        return parts[0][1] if parts[0][0] == target else None
    key = tuple(sorted(value for value, _ in parts))
    if key in seen:
        return None
    seen.add(key)
    for first, second in combinations(range(len(parts)), 2):
        rest = [part for place, part in enumerate(parts) if place not in (first, second)]
        for joined in _joined(parts[first], parts[second]):
            if found := _solve([*rest, joined], target, seen):
                return found
    return None


def _joined(left: tuple[Fraction, str], right: tuple[Fraction, str]) -> list[tuple[Fraction, str]]:
    (a, x), (b, y) = left, right
    made = [(a + b, f"({x} + {y})"), (a * b, f"({x} * {y})"), (a - b, f"({x} - {y})"), (b - a, f"({y} - {x})")]
    if b:
        made.append((a / b, f"({x} / {y})"))
    if a:
        made.append((b / a, f"({y} / {x})"))
    return made


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"{text[at:].strip()[:12]!r} is not arithmetic")
        token = match["number"] or match["mark"]
        if token == "*" and tokens[-1:] == ["*"]:
            raise ValueError("a power (**) is not allowed")
        tokens.append(token)
        at = match.end()
    return tokens


def _split(tokens: list[str]) -> list[list[str]]:
    sides: list[list[str]] = [[]]
    for token in tokens:
        if token == "=":
            sides.append([])
        else:
            sides[-1].append(token)
    return sides


class _Parser:
    """One side of an equation, by recursive descent: sum, product, factor."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._numbers: list[Fraction] = []

    def parse(self) -> Equation:
        if not self._tokens:
            raise ValueError("there is no expression")
        value = self._sum()
        if self._at < len(self._tokens):
            raise ValueError(f"{self._tokens[self._at]!r} stands where an operator should")
        return Equation(value, tuple(self._numbers))

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, wanted: str = "") -> str:
        token = self._next()
        if not token or (wanted and token != wanted):
            raise ValueError(f"{wanted or 'a number'!r} is missing" if wanted else "the expression is not finished")
        self._at += 1
        return token

    def _sum(self) -> Fraction:
        value = self._product()
        while self._next() in ("+", "-"):
            value = value + self._product() if self._take() == "+" else value - self._product()
        return value

    def _product(self) -> Fraction:
        value = self._factor()
        while self._next() in ("*", "/"):
            divides = self._take() == "/"
            value = _divide(value, self._factor()) if divides else value * self._factor()
        return value

    def _factor(self) -> Fraction:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("the expression is nested too deeply")
        token = self._take()
        if token == "-":
            value = -self._factor()
        elif token == "(":
            value = self._sum()
            self._take(")")
        elif token == "\\frac":
            above = self._group()
            value = _divide(above, self._group())
        else:
            value = self._number(token)
        self._depth -= 1
        return value

    def _group(self) -> Fraction:
        self._take("(")
        value = self._sum()
        self._take(")")
        return value

    def _number(self, token: str) -> Fraction:
        if not token[0].isdigit():
            raise ValueError(f"{token!r} stands where a number should")
        if len(self._numbers) == MOST_NUMBERS:
            raise ValueError(f"more than {MOST_NUMBERS} numbers")
        value = Fraction(token)
        self._numbers.append(value)
        return value


def _divide(above: Fraction, below: Fraction) -> Fraction:
    if not below:
        raise ValueError("a division by zero")
    return above / below
