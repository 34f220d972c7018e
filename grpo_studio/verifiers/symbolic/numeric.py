"""The value of a tree to many digits, at fixed values of its symbols, within bounds that are checked beforehand.

All magnitudes lie between 10^-LARGEST_POWER and 10^LARGEST_POWER; the precision grows with the largest of them, so
that `e^{200}+1` and `e^{200}` differ. The cost of each step is counted. What would go beyond raises TooCostlyError;
a value that does not exist raises ArithmeticError or ValueError.
"""

from __future__ import annotations

import hashlib
import importlib
import math
import threading
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from grpo_studio.verifiers.symbolic.evaluate import series_range
from grpo_studio.verifiers.symbolic.tree import Node, TooCostlyError
from grpo_studio.verifiers.symbolic.words import word_set

LARGEST_POWER = 300
DIGITS = 60
_CERTAIN = 40  # digits of the least quantity that went into a value
_SMALL = 8
_MOST_COST = 2500
_BITS_PER_DIGIT = 3.33
_RANGES = ((1, 4), (0, 1), (3, 11), (0, 2), (10, 40), (40, 200), (200, 2000), (2, 6))
_local = threading.local()


def context() -> Any:
    """This thread's mpmath context: its precision is a setting, which threads must not share."""
    if not hasattr(_local, "context"):
        _local.context = importlib.import_module("mpmath.ctx_mp").MPContext()
    return _local.context


class Point(NamedTuple):
    """Where an expression is evaluated: `at` picks the values of its symbols.

    `whole` puts them on integers, `negative` on negative numbers; `common_log` reads `log` in base 10. With `real`
    a step that leaves the real numbers has no value, and the symbol `flipped` alone is negative.
    """

    at: int = 0
    whole: bool = False
    common_log: bool = False
    negative: bool = False
    real: bool = False
    flipped: str = ""


def value_at(node: Node, point: Point, digits: int = DIGITS) -> tuple[Any, float]:
    """The value there, computed to these digits, and the largest power of ten that went into it (or its inverse)."""
    return _value_at(node, point, digits, threading.get_ident())


@lru_cache(maxsize=16384)
def _value_at(node: Node, point: Point, digits: int, thread: int) -> tuple[Any, float]:
    """A value belongs to the context, and so to the thread, that made it."""
    evaluation = _Numeric(point, digits)
    return evaluation.value(node, {}), evaluation.largest


def values_at(left: Node, right: Node, point: Point) -> tuple[Any, Any, float]:
    """Both values there, and the size below which their difference is noise: no digit that matters is below it."""
    (one, first), (other, second) = value_at(left, point), value_at(right, point)
    largest = max(first, second)
    digits = DIGITS
    if largest > _SMALL:
        largest = 20 * math.ceil(largest / 20)  # few different precisions, so that the cache is hit
        digits = DIGITS + 2 * largest
        one, other = value_at(left, point, digits)[0], value_at(right, point, digits)[0]
    context().dps = digits
    return one, other, context().mpf(10) ** -(_CERTAIN + largest)


class _Numeric:
    def __init__(self, point: Point, digits: int) -> None:
        self.point = point
        self.digits = digits
        self.cost = 0.0
        self.largest = 0.0
        self.mp = context()
        self.mp.dps = digits

    def value(self, node: Node, bound: Mapping[str, int]) -> Any:
        """The value of this node; its magnitude is noted, unless it is a sum, in which terms may cancel."""
        self._spend(1)
        found = self._value(node, bound)
        if self.point.real and self.mp.im(found):
            raise ArithmeticError("no real number")
        if node.op not in ("add", "sum") and found:
            self._note(found)
        return found

    def _spend(self, steps: float) -> None:
        self.cost += steps * self.digits / DIGITS
        if self.cost > _MOST_COST:
            raise TooCostlyError("too many steps to evaluate")

    def _note(self, found: Any) -> None:
        power = abs(self.mp.mag(found)) / _BITS_PER_DIGIT
        if power > LARGEST_POWER:
            raise TooCostlyError(f"a number beyond 10^{LARGEST_POWER}")
        self.largest = max(self.largest, power)

    def _value(self, node: Node, bound: Mapping[str, int]) -> Any:
        match node.op:
            case "num":
                return self._rational(node.value)
            case "sym":
                return self.mp.mpf(bound[node.name]) if node.name in bound else self._point(node.name)
            case "const":
                return self._constant(node.name)
            case "sum" | "prod":
                return self._series(node, bound)
        parts = [self.value(part, bound) for part in node.args]
        rule = _RULES.get(node.op)
        if node.op == "call":
            self._spend(5)
            return self._call(node.name, parts)
        if rule is None:
            raise ValueError(f"{node.op} has no value")
        return rule(self, parts)

    def _rational(self, value: Fraction) -> Any:
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > 4000:
            raise TooCostlyError("a number of too many digits")
        return self.mp.mpf(value.numerator) / value.denominator

    def _point(self, name: str) -> Any:
        """A value that depends on the name and the point alone; the ranges differ from point to point."""
        noise = int.from_bytes(hashlib.blake2b(f"{name}/{self.point.at}".encode(), digest_size=8).digest(), "big")
        if self.point.whole:
            return self.mp.mpf(2 + noise % 19)
        low, high = _RANGES[self.point.at % len(_RANGES)]
        at = low + (high - low) * self.mp.mpf(noise % 999_979 + 1) / 999_983
        return -at if name == self.point.flipped or (self.point.negative and noise % 3) else at

    def _constant(self, name: str) -> Any:
        match name:
            case "pi":
                return +self.mp.pi
            case "e":
                return +self.mp.e
            case "i":
                return self.mp.mpc(0, 1)
        raise ValueError(f"{name} has no value")

    def _series(self, node: Node, bound: Mapping[str, int]) -> Any:
        ends = [self.value(part, bound) for part in node.args[1:]]
        lower, upper = (Fraction(int(end)) if end == int(end) else Fraction(1, 2) for end in map(self.mp.re, ends))
        total = self.mp.mpf(node.op == "prod")
        for at in series_range(lower, upper):
            part = self.value(node.args[0], {**bound, node.name: at})
            total = total + part if node.op == "sum" else total * part
        return total

    def power(self, base: Any, exponent: Any) -> Any:
        """A power whose magnitude was estimated first."""
        if base == 0:
            if self.mp.re(exponent) <= 0:
                raise ArithmeticError("zero to a power that is not positive")
            return self.mp.mpf(0)
        size = abs(exponent) * (abs(self.mp.log(abs(base))) + (4 if isinstance(base, self.mp.mpc) or base < 0 else 0))
        if size > LARGEST_POWER * 2.31:
            raise TooCostlyError(f"a power beyond 10^{LARGEST_POWER}")
        self._spend(3)
        return base**exponent

    def root(self, base: Any, index: Any) -> Any:
        """The real root where there is one: an odd root of a negative number is negative."""
        if not isinstance(base, self.mp.mpc) and base < 0 and index == int(self.mp.re(index)) and int(index) % 2:
            return -self.power(-base, 1 / index)
        return self.power(base, 1 / index)

    def factorial(self, at: Any, step: int) -> Any:
        """`n!` and `n!!` by the gamma function, of real numbers up to 150."""
        if isinstance(at, self.mp.mpc) or not -1 < at < 150:
            raise TooCostlyError("a factorial out of range")
        self._spend(20)
        return self.mp.factorial(at) if step == 1 else self.mp.fac2(at)

    def _call(self, name: str, parts: list[Any]) -> Any:
        if name in ("sinh", "cosh", "tanh", "exp") and abs(parts[0]) > LARGEST_POWER * 2.3:
            raise TooCostlyError(f"a power beyond 10^{LARGEST_POWER}")
        if name == "binom" and max(abs(part) for part in parts) > 150:
            raise TooCostlyError("a binomial coefficient out of range")
        if name == "log":
            base = parts[1] if len(parts) > 1 else (self.mp.mpf(10) if self.point.common_log else None)
            return self.mp.log(parts[0]) if base is None else self.mp.log(parts[0]) / self.mp.log(base)
        function = _CALLS.get(name)
        if function is None or (len(parts) != 1 and name not in ("max", "min", "mod", "binom")):
            raise ValueError(f"{name} has no value")
        return function(self.mp, *parts)


_RULES: dict[str, Callable[[_Numeric, list[Any]], Any]] = {
    "add": lambda _, parts: sum(parts[1:], start=parts[0]),
    "mul": lambda _, parts: math.prod(parts[1:], start=parts[0]),
    "div": lambda _, parts: parts[0] / parts[1],
    "neg": lambda _, parts: -parts[0],
    "abs": lambda _, parts: abs(parts[0]),
    "percent": lambda _, parts: parts[0] / 100,
    "degree": lambda at, parts: parts[0] * at.mp.pi / 180,
    "pow": lambda at, parts: at.power(*parts),
    "root": lambda at, parts: at.root(*parts),
    "fact": lambda at, parts: at.factorial(parts[0], 1),
    "fact2": lambda at, parts: at.factorial(parts[0], 2),
}
_BY_NAME = "sin cos tan cot sec csc sinh cosh tanh coth exp floor ceil arg"
_INVERSE = "sin cos tan cot sec csc"
_HYPERBOLIC = "sinh cosh tanh"


def _method(name: str) -> Callable[..., Any]:
    return lambda mp, x: getattr(mp, name)(x)


_CALLS: dict[str, Callable[..., Any]] = {
    **{name: _method(name) for name in word_set(_BY_NAME)},
    **{"arc" + name: _method("a" + name) for name in word_set(_INVERSE)},
    **{"ar" + name: _method("a" + name) for name in word_set(_HYPERBOLIC)},
    "conjugate": lambda mp, x: mp.conj(x),
    "ln": lambda mp, x: mp.log(x),
    "lg": lambda mp, x: mp.log10(x),
    "Re": lambda mp, x: mp.re(x),
    "Im": lambda mp, x: mp.im(x),
    "sgn": lambda mp, x: mp.sign(x),
    "max": lambda _, *parts: max(parts),
    "min": lambda _, *parts: min(parts),
    "mod": lambda mp, a, b: a - b * mp.floor(a / b),
    "binom": lambda mp, n, k: mp.binomial(n, k),
}
