"""The exact value of a tree of rational arithmetic.

Nothing is computed before its size is known: a number may grow to MOST_BITS, a sum has at most 1,000 terms, and the
steps of one evaluation are counted by their cost. What would go beyond raises TooCostlyError. Values that do not
exist (a division by zero) raise ArithmeticError.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

from grpo_studio.verifiers.symbolic.tree import Node, TooCostlyError

MOST_BITS = 60_000
_MOST_STEPS = 6000
_LONGEST_SUM = 1000
_LARGEST_FACTORIAL = 5000
_RATIONAL = frozenset(
    {"num", "add", "mul", "div", "neg", "pow", "fact", "fact2", "percent", "abs", "sum", "prod", "sym"}
)
_INTEGER_CALLS = frozenset({"gcd", "lcm", "mod", "binom", "floor", "ceil", "max", "min"})


class _Exact:
    """One evaluation in rational numbers."""

    def __init__(self) -> None:
        self.steps = 0

    def value(self, node: Node, bound: Mapping[str, Fraction]) -> Fraction | None:
        """The rational value, or None when the tree has none that is found exactly."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise TooCostlyError("too many steps to evaluate")
        match node.op:
            case "num":
                return node.value
            case "sym":
                return bound.get(node.name)
            case "sum" | "prod":
                return self._series(node, bound)
        if node.op not in _RATIONAL and not (node.op == "call" and node.name in _INTEGER_CALLS):
            return None
        parts = [self.value(part, bound) for part in node.args]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        if node.op == "mul" and sum(map(_bits, known)) > MOST_BITS:
            raise TooCostlyError(f"a number of more than {MOST_BITS} bits")
        return self._bounded(_apply(node, known))

    def _series(self, node: Node, bound: Mapping[str, Fraction]) -> Fraction | None:
        lower, upper = self.value(node.args[1], bound), self.value(node.args[2], bound)
        if lower is None or upper is None:
            return None
        total = Fraction(node.op == "prod")
        for at in series_range(lower, upper):
            part = self.value(node.args[0], {**bound, node.name: Fraction(at)})
            if part is None:
                return None
            total = total + part if node.op == "sum" else total * part
            self._bounded(total)
        return total

    def _bounded(self, value: Fraction | None) -> Fraction | None:
        """The value, its cost counted: long integers take the square of their length."""
        if value is not None:
            bits = _bits(value)
            self.steps += (bits // 1000) ** 2 // 4
            if bits > MOST_BITS:
                raise TooCostlyError(f"a number of more than {MOST_BITS} bits")
        return value


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


def series_range(lower: Fraction, upper: Fraction) -> range:
    """The values that the index of a finite sum takes."""
    if lower.denominator != 1 or upper.denominator != 1:
        raise ArithmeticError("a sum between numbers that are not whole")
    if upper - lower > _LONGEST_SUM:
        raise TooCostlyError(f"a sum of more than {_LONGEST_SUM} terms")
    return range(int(lower), int(upper) + 1)


@lru_cache(maxsize=4096)
def exact(node: Node) -> Fraction | None:
    """The rational value, None for a tree of another kind. Raises TooCostlyError and ArithmeticError."""
    return _Exact().value(node, {})


def _apply(node: Node, parts: list[Fraction]) -> Fraction | None:
    first = parts[0]
    match node.op:
        case "add":
            return sum(parts, Fraction(0))
        case "mul":
            return math.prod(parts[1:], start=first)
        case "div":
            return first / parts[1]
        case "neg":
            return -first
        case "abs":
            return abs(first)
        case "percent":
            return first / 100
        case "pow":
            return _power(first, parts[1])
        case "fact" | "fact2":
            return _factorial(first, 1 if node.op == "fact" else 2)
    return _integer_call(node.name, parts)


def _power(base: Fraction, exponent: Fraction) -> Fraction | None:
    if exponent.denominator != 1:
        return None
    if base == 0 and exponent <= 0:
        raise ZeroDivisionError("zero to a power that is not positive")
    if abs(base) in (0, 1):
        return base if exponent % 2 else abs(base)
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(exponent) * size > MOST_BITS:
        raise TooCostlyError(f"a power of more than {MOST_BITS} bits")
    return Fraction(base ** int(exponent))


def _factorial(value: Fraction, step: int) -> Fraction | None:
    if value.denominator != 1:
        return None
    if value < 0:
        raise ArithmeticError("the factorial of a negative number")
    if value > _LARGEST_FACTORIAL:
        raise TooCostlyError(f"the factorial of a number over {_LARGEST_FACTORIAL}")
    return Fraction(math.prod(range(int(value), 0, -step)))


def _integer_call(name: str, parts: list[Fraction]) -> Fraction | None:
    match name:
        case "floor":
            return Fraction(math.floor(parts[0]))
        case "ceil":
            return Fraction(math.ceil(parts[0]))
        case "max":
            return max(parts)
        case "min":
            return min(parts)
        case "mod":
            return parts[0] % parts[1]
    if any(part.denominator != 1 for part in parts):
        return None
    whole = [int(part) for part in parts]
    if name == "gcd":
        return Fraction(math.gcd(*whole))
    if name == "lcm":
        return Fraction(math.lcm(*whole))
    if len(whole) != 2 or min(whole) < 0 or whole[0] > _LARGEST_FACTORIAL:
        raise TooCostlyError("a binomial coefficient out of range")
    return Fraction(math.comb(*whole))
