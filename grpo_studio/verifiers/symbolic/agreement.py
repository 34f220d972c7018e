"""Whether two expressions with symbols agree at several fixed points, which different formulas do not share.

Symbols stand for positive numbers, and one at a time for a negative one wherever both sides are real there:
`\\sqrt{x^2}` is not `x`, but `\\sqrt{x/y}` is `\\sqrt{xy}/y`.
"""

from __future__ import annotations

from typing import Any

from grpo_studio.verifiers.symbolic.numeric import Point, context, value_at, values_at
from grpo_studio.verifiers.symbolic.tree import Node, TooCostlyError, symbols

_POINTS = 12
_ENOUGH = 4  # but all of them where signs or parities decide
_MOST_FLIPPED = 6
_SIGN_MATTERS = frozenset({"abs", "max", "min", "sgn", "floor", "ceil"})


def agree_everywhere(left: Node, right: Node, *, common_log: bool) -> bool:
    """Agreement at points of every kind that matters to these two; `common_log` reads `log` in base 10."""
    parts = [*left.walk(), *right.walk()]
    whole = any(map(_wants_integers, parts))
    complex_too = any(part.op == "const" and part.name == "i" for part in parts)
    signed = any(part.op == "abs" or (part.op == "call" and part.name in _SIGN_MATTERS) for part in parts)
    if not _agree_often(left, right, Point(0, whole, common_log), complex_too, signed):
        return False
    flips = not (whole or complex_too) and any(map(_tells_signs, parts))
    return not flips or _agree_flipped(left, right, Point(common_log=common_log, real=True))


def _wants_integers(node: Node) -> bool:
    """Whether symbols in this node only make sense as integers: `(-1)^n`, `n!`, a sum to `n`."""
    if node.op == "pow" and symbols(node.args[1]) and not symbols(node.args[0]):
        base = node.args[0]
        return base.op == "neg" or (base.op == "mul" and base.args[0].op == "neg")
    if node.op in ("fact", "fact2", "sum", "prod") or (
        node.op == "call" and node.name in ("binom", "mod", "gcd", "lcm")
    ):
        return bool(symbols(node))
    return False


def _tells_signs(node: Node) -> bool:
    """Whether an identity of this node may hold for positive numbers alone: roots, other powers, functions."""
    if node.op == "pow":
        exponent = node.args[1].args[0] if node.args[1].op == "neg" else node.args[1]
        return (exponent.op != "num" or exponent.value.denominator != 1) and bool(symbols(node))
    return node.op in ("root", "abs", "call") and bool(symbols(node))


def _agree_often(left: Node, right: Node, how: Point, complex_too: bool, signed: bool) -> bool:
    """Agreement at enough points where both sides are real (or anywhere, with the imaginary unit in the text)."""
    rounds = [(how, complex_too)]
    if signed:
        rounds.append((how._replace(negative=True), complex_too))
    agreed = 0
    for at, any_value in rounds:
        found = _agreeing_points(left, right, at, any_value, signed)
        if found is None:
            return False
        agreed += found
    for at, any_value in ((how._replace(negative=True), False), (how, True)):  # `\sqrt{-x}`, `\ln(-x^2)`
        if not agreed:
            found = _agreeing_points(left, right, at, any_value, signed)
            if found is None:
                return False
            agreed += found
    return agreed >= 2


def _agreeing_points(left: Node, right: Node, how: Point, any_value: bool, thorough: bool) -> int | None:
    """At how many points both have a value, and the same; None when they differ at one."""
    agreed, enough = 0, _POINTS if how.whole or thorough else _ENOUGH
    for index in range(_POINTS):
        try:
            one, other, noise = values_at(left, right, how._replace(at=index))
        except TooCostlyError:
            if index == _POINTS - 1 and not agreed:
                raise
            continue
        except (ArithmeticError, ValueError):
            continue
        if not any_value and not (_is_real(one) and _is_real(other)):
            continue
        if abs(one - other) > noise:
            return None
        agreed += 1
        if agreed == enough:
            break
    return agreed


def _agree_flipped(left: Node, right: Node, how: Point) -> bool:
    """Whether no real point with one negative symbol tells the two apart.

    A modulus is there to extend what stands in it: where it alone has a value, `\\ln|x|` is not `\\ln x`.
    """
    for name in ("", *sorted(symbols(left) | symbols(right))[:_MOST_FLIPPED]):
        for index in range(_ENOUGH):
            at = how._replace(at=index, flipped=name)
            try:
                one, other, noise = values_at(left, right, at)
            except TooCostlyError:
                continue
            except (ArithmeticError, ValueError):
                if _extended(left, right, at) or _extended(right, left, at):
                    return False
                continue
            if abs(one - other) > noise:
                return False
    return True


def _extended(left: Node, right: Node, at: Point) -> bool:
    """Whether a modulus gives the left side a value where the right side has none."""
    if not any(part.op == "abs" and symbols(part) for part in left.walk()):
        return False
    try:
        value_at(left, at)
    except (ArithmeticError, ValueError):
        return False
    try:
        value_at(right, at)
    except TooCostlyError:
        return False
    except (ArithmeticError, ValueError):
        return True
    return False


def _is_real(value: Any) -> bool:
    return bool(abs(context().im(value)) <= abs(value) * 1e-30)
