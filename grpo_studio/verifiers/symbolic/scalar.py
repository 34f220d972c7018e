"""Whether two expressions have the same value.

Rational arithmetic is compared exactly. All else is compared to at least 40 digits: expressions without symbols at
once, others at several points (agreement.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from grpo_studio.verifiers.symbolic.agreement import agree_everywhere
from grpo_studio.verifiers.symbolic.evaluate import exact
from grpo_studio.verifiers.symbolic.numeric import Point, values_at
from grpo_studio.verifiers.symbolic.tree import Node, TooCostlyError, number, symbols
from grpo_studio.verifiers.symbolic.units import canonical

_NOISE = Fraction(1, 10**12)
_NOISE_OF_WHOLE = Fraction(1, 10**6)
_UNVALUED = frozenset({"oo", "empty", "reals", "integers", "naturals", "rationals", "complexes", "unknown"})


@dataclass(frozen=True)
class Leeway:
    """What may differ: `tolerance` is a relative error of values without symbols."""

    tolerance: float = 0.0


def same_value(left: Node, right: Node, leeway: Leeway) -> bool:
    """Whether the values agree; units count only when both sides name one. Raises TooCostlyError."""
    if not same_units(left, right):
        return False
    return any(
        _equal(one, other, leeway) for one, other in _scales(hoisted(_stripped(left)), hoisted(_stripped(right)))
    )


def same_units(left: Node, right: Node) -> bool:
    """False when both sides name measuring units, and different ones."""
    one, other = _units(left), _units(right)
    return not one or not other or one == other


def _units(node: Node) -> frozenset[str]:
    named = (canonical(part.name) for part in node.walk() if part.op == "unit")
    return frozenset(name for name in named if name is not None)


def _stripped(node: Node) -> Node:
    if not any(part.op == "unit" for part in node.walk()):
        return node
    if node.op == "unit":
        return _stripped(node.args[0])
    return Node(node.op, tuple(map(_stripped, node.args)), node.name, node.value, node.noisy)


def hoisted(node: Node) -> Node:
    """A sign inside of a percent or degree mark: `-(35%)` is `(-35)%`."""
    if node.op == "neg":
        inner = hoisted(node.args[0])
        if inner.op in ("percent", "degree"):
            return Node(inner.op, (Node("neg", inner.args),))
    return node


def _scales(left: Node, right: Node) -> Iterator[tuple[Node, Node]]:
    """The readings of a percent or degree mark: a unit, or the factor that it stands for."""
    for mark in ("percent", "degree"):
        if left.op == mark and right.op == mark:
            yield left.args[0], right.args[0]
            return
        if left.op == mark:
            yield left.args[0], right
        elif right.op == mark:
            yield left, right.args[0]
    yield left, right


def _equal(left: Node, right: Node, leeway: Leeway) -> bool:
    if left == right:
        return True
    if any(part.op == "const" and part.name in _UNVALUED for node in (left, right) for part in node.walk()):
        return False
    if "based" in (left.op, right.op):
        return _same_digits(left, right)
    try:
        one, other = exact(left), exact(right)
        if one is not None and other is not None:
            return _close_rationals(one, other, _noisy(left) or _noisy(right), leeway.tolerance)
        return _agree(left, right, leeway)
    except (ArithmeticError, ValueError) as error:
        if isinstance(error, TooCostlyError):
            raise
        return False


def _same_digits(left: Node, right: Node) -> bool:
    """`1011_2` is matched by its digits, with the base or without: its value in base 10 is another answer."""
    based, other = (left, right) if left.op == "based" else (right, left)
    digits = based.name.partition("_")[0]
    return other.op == "num" and other.value == Fraction(digits)


def _noisy(node: Node) -> bool:
    return node.noisy or (node.op == "neg" and node.args[0].noisy)


def _close_rationals(one: Fraction, other: Fraction, noisy: bool, tolerance: float) -> bool:
    if one == other:
        return True
    apart, size = abs(one - other), max(abs(one), abs(other))
    if noisy and apart <= _NOISE * size:
        whole = one.denominator == 1 or other.denominator == 1
        return not whole or apart <= _NOISE_OF_WHOLE
    return tolerance > 0 and apart <= Fraction(tolerance) * size


def _agree(left: Node, right: Node, leeway: Leeway) -> bool:
    parts = [*left.walk(), *right.walk()]
    logs = (False, True) if any(part.op == "call" and part.name == "log" for part in parts) else (False,)
    if not symbols(left) | symbols(right):
        allowed = max(leeway.tolerance, float(_NOISE) if _noisy(left) or _noisy(right) else 0.0)
        return any(_agree_at(left, right, Point(common_log=log), allowed) for log in logs)
    return any(agree_everywhere(left, right, common_log=log) for log in logs)


def _agree_at(left: Node, right: Node, point: Point, allowed: float) -> bool:
    one, other, noise = values_at(left, right, point)
    apart = abs(one - other)
    return bool(apart <= noise or (allowed > 0 and apart <= allowed * max(abs(one), abs(other))))


def difference_of(left: Node, right: Node) -> Node:
    """`left - right` as a tree."""
    return left if right == number(0) else Node("add", (left, Node("neg", (right,))))
