"""Whether two equations or inequalities say the same: their differences have a constant ratio."""

from __future__ import annotations

from typing import Any

from grpo_studio.verifiers.symbolic.numeric import Point, context, values_at
from grpo_studio.verifiers.symbolic.scalar import Leeway, difference_of, same_value
from grpo_studio.verifiers.symbolic.tree import Node, TooCostlyError, symbols

_POINTS = 8
_FLIPPED_POINTS = 3  # and at these each symbol in turn is negative
_MOST_FLIPPED = 6


def same_relation(gold: Node, answer: Node, leeway: Leeway) -> bool:
    """Whether two `rel` nodes are equivalent up to a constant factor (a positive one for inequalities)."""
    gold, answer = _rising(gold), _rising(answer)
    if gold.name != answer.name or len(gold.args) != len(answer.args):
        return False
    if all(same_value(one, other, leeway) for one, other in zip(gold.args, answer.args, strict=True)):
        return True
    if len(gold.args) != 2 or symbols(gold) != symbols(answer):
        return False
    ratios = _ratios(difference_of(*gold.args), difference_of(*answer.args))
    if len(ratios) < 3:
        return False
    mp = context()
    first = ratios[0]
    steady = all(abs(ratio - first) <= abs(first) * mp.mpf(10) ** -30 for ratio in ratios)
    return steady and (gold.name in "=≠" or mp.re(first) > 0)


def _rising(node: Node) -> Node:
    """The relation read from its smaller side: `a > b` is `b < a`."""
    if set(node.name) <= set(">≥"):
        return Node("rel", node.args[::-1], node.name[::-1].translate(str.maketrans(">≥", "<≤")))
    return node


def _ratios(left: Node, right: Node) -> list[Any]:
    found = []
    flips = sorted(symbols(left))[:_MOST_FLIPPED]
    points = [Point(index) for index in range(_POINTS)]
    points += [Point(index, real=True, flipped=name) for name in flips for index in range(_FLIPPED_POINTS)]
    for point in points:
        try:
            one, other, noise = values_at(left, right, point)
        except TooCostlyError:
            raise
        except (ArithmeticError, ValueError):
            continue
        if abs(one) > noise and abs(other) > noise:
            found.append(one / other)
    return found
