"""Brings an answer's tree into the form in which it is compared.

Adds to the ops of tree.py: `named` (lhs, value: 'x = 4', 'x in (1,2)', 'x > 3') and `alt` (several spellings of one
value: 'a, about 1.41'). Inequalities of one symbol become intervals, `±` a list, a false equation an error.
"""

from __future__ import annotations

from itertools import pairwise

from grpo_studio.verifiers.symbolic.numeric import Point, context, value_at
from grpo_studio.verifiers.symbolic.scalar import Leeway, same_value
from grpo_studio.verifiers.symbolic.tree import Node, TooCostlyError, symbols

_INFINITY = Node("const", name="oo")
_MINUS_INFINITY = Node("neg", (_INFINITY,))
_REALS = Node("group", (_MINUS_INFINITY, _INFINITY), name="()")
_NOT_FUNCTIONS = frozenset("xyztnkmabcdijlrsw")
_ROUGH = Leeway(0.05)
_MIRRORED = str.maketrans("<>≤≥", "><≥≤")


class WrongError(ValueError):
    """The answer contradicts itself."""


def settle(node: Node) -> Node:
    """The form for comparison. Raises WrongError and TooCostlyError."""
    if any(part.op in ("pm", "mp") for part in node.walk()) and node.op not in ("list", "group"):
        both = [settle(_with_sign(node, positive)) for positive in (True, False)]
        return _list([item for one in both for item in (one.args if one.op == "list" else (one,))])
    match node.op:
        case "rel":
            return _relation(list(node.args), node.name)
        case "list":
            settled = [(part, settle(part)) for part in node.args]
            # A '±' stands for items of this list; a list inside of it stays one item.
            items = [i for part, one in settled for i in (one.args if one.op == "list" != part.op else (one,))]
            return _list(items, node.name)
        case "group":
            inner = [settle(part) for part in node.args]
            if node.name == "⦃⦄":
                inner = [item for part in inner for item in (part.args if part.op == "list" else (part,))]
            return Node("group", tuple(inner), name=_brackets(node.name, len(inner)))
        case "union":
            return _union([settle(part) for part in node.args])
        case "minus":
            return _without(settle(node.args[0]), settle(node.args[1]))
        case "const" if node.name == "reals":
            return _REALS
        case "unit" if node.args[0].op in ("group", "list", "colon"):
            return Node("unit", (settle(node.args[0]),), name=node.name)
    return node


def _with_sign(node: Node, positive: bool) -> Node:
    inner = tuple(_with_sign(part, positive) for part in node.args)
    if node.op in ("pm", "mp"):
        return inner[0] if (node.op == "pm") == positive else Node("neg", inner)
    return Node(node.op, inner, node.name, node.value, node.noisy)


def _brackets(name: str, length: int) -> str:
    return "()" if name == "⟨⟩" or (name == "[]" and length != 2) else name


def _list(items: list[Node], joint: str = "") -> Node:
    """Items side by side; inequalities of one symbol are the union of their intervals ('x > 1 and x < 3': (1, 3))."""
    sets = [item.args[1] for item in items if item.op == "named" and item.args[1].op in ("group", "union")]
    if len(sets) == len(items) > 1 and len({item.args[0] for item in items}) == 1:
        return Node("named", (items[0].args[0], (_overlap(sets) if joint == "and" else None) or _union(sets)))
    return Node("list", tuple(items))


def _overlap(sets: list[Node]) -> Node | None:
    """What a lower and an upper bound leave between them, or None: 'x < 1 and x > 3' means both rays."""
    below = [one for one in sets if one.op == "group" and one.args[0] == _MINUS_INFINITY]
    above = [one for one in sets if one.op == "group" and one.args[-1] == _INFINITY]
    if len(sets) != 2 or len(below) != 1 or len(above) != 1:
        return None
    low, high = above[0].args[0], below[0].args[1]
    try:
        gap = context().re(value_at(high, Point())[0]) - context().re(value_at(low, Point())[0])
    except (ArithmeticError, ValueError):
        return None
    return _interval(low, high, above[0].name[0] + below[0].name[1]) if gap > 0 else None


def _union(parts: list[Node]) -> Node:
    flat = [item for part in parts for item in (part.args if part.op == "union" else (part,))]
    return Node("union", tuple(flat))


def _without(whole: Node, removed: Node) -> Node:
    """The real line without some points, as intervals; other differences stay."""
    points = removed.args if removed.op in ("group", "list") else (removed,)
    if whole == _REALS and removed.op in ("group", "list") and not symbols(removed):
        return _punctured(list(points))
    return Node("minus", (whole, removed))


def _punctured(points: list[Node]) -> Node:
    """All real numbers but these, as intervals."""
    try:
        ordered = sorted(points, key=lambda point: context().re(value_at(point, Point())[0]))
    except (ArithmeticError, ValueError):
        return Node("minus", (_REALS, Node("group", tuple(points), name="⦃⦄")))
    ends = [_MINUS_INFINITY, *ordered, _INFINITY]
    return Node("union", tuple(_interval(low, high, "()") for low, high in pairwise(ends)))


def _interval(low: Node, high: Node, brackets: str) -> Node:
    return Node("group", (low, high), name=brackets)


# -- relations --------------------------------------------------------------------------------------------------------
def _relation(sides: list[Node], signs: str) -> Node:
    if "∈" in signs:
        return Node("named", (sides[0], settle(sides[1]))) if signs == "∈" else Node("rel", tuple(sides), signs)
    if set(signs) <= set("=≈"):
        return _equation(sides, signs)
    if signs == "≠":
        if sides[0].op == "sym" and not symbols(sides[1]):
            return Node("named", (sides[0], _punctured([sides[1]])))
        return Node("rel", tuple(sides), signs)
    return _inequality(sides, signs)


def _equation(sides: list[Node], signs: str) -> Node:
    if is_name(sides[0]):
        return _named(sides[0], _chain(sides[1:], signs[1:]))
    if len(sides) == 2 and is_name(sides[1]) and sides[1].op == "sym":
        return _named(sides[1], settle(sides[0]))
    if not any(symbols(side) for side in sides):
        return _chain(sides, signs)
    last = _chain(sides[1:], signs[1:])
    if len(sides) > 2 and sum(not symbols(side) for side in sides) > 1:
        return last  # the formula, the numbers in it, the value
    if last.op == "alt" or len(sides) > 2 or not _same(sides[0], last):
        return Node("rel", (sides[0], last), "=")
    return last  # an identity, such as an expression and its factored form


def _same(left: Node, right: Node) -> bool:
    try:
        return same_value(left, right, Leeway())
    except TooCostlyError:
        return False


def _named(name: Node, value: Node) -> Node:
    if value.op in ("list", "named"):
        return value
    return Node("named", (name, value))


def _chain(sides: list[Node], signs: str) -> Node:
    """The last of the sides of `a = b = c`. Raises WrongError when two of them are constants that differ."""
    sides = [settle(side) for side in sides]
    constants = [at for at, side in enumerate(sides) if not symbols(side) and side.op not in ("word", "named")]
    for left, right in pairwise(constants):
        rough = "≈" in signs[:right]
        if not same_value(sides[left], sides[right], _ROUGH if rough else Leeway()):
            raise WrongError("its equation is false")
    if "≈" in signs:
        cut = signs.index("≈")
        return Node("alt", (sides[cut], *sides[cut + 1 :]))
    return sides[-1]


def is_name(node: Node) -> bool:
    """Whether a side of an equation only names what the other side is: `x`, `f(2)`, `AB`, `(x,y)`, 'Area'."""
    if node.op in ("sym", "word"):
        return True
    if node.op == "group":
        return node.name == "()" and all(part.op == "sym" for part in node.args)
    if node.op in ("abs", "div", "colon"):  # '|AB| = 5', 'AB/CD = 2', 'V_1 : V_2 = 3 : 4'
        return all(part.op in ("mul", "sym") and _is_segment(part) for part in node.args)
    if node.op != "mul":
        return False
    if node.name == "applied":
        head = node.args[0] if node.args[0].op == "sym" else node.args[0].args[0]
        return head.op == "sym" and head.name[0] not in _NOT_FUNCTIONS
    return _is_segment(node)


def _is_segment(node: Node) -> bool:
    """Capitals only, as in the name of a segment, an angle, an area."""
    return all(part.op == "sym" and part.name[0].isupper() for part in (node.args if node.op == "mul" else (node,)))


def _inequality(sides: list[Node], signs: str) -> Node:
    if set(signs) <= set(">≥"):
        sides, signs = sides[::-1], signs[::-1].translate(_MIRRORED)
    if not set(signs) <= set("<≤"):
        return Node("rel", tuple(sides), signs)
    symbolic = [side.op == "sym" or (side.name == "applied" and is_name(side)) for side in sides]
    constant = [not symbols(side) and side.op not in ("group", "list") for side in sides]
    if len(sides) == 2 and symbolic[0] and constant[1]:
        return Node("named", (sides[0], _interval(_MINUS_INFINITY, sides[1], "(" + (")" if signs == "<" else "]"))))
    if len(sides) == 2 and constant[0] and symbolic[1]:
        return Node("named", (sides[1], _interval(sides[0], _INFINITY, ("(" if signs == "<" else "[") + ")")))
    if len(sides) == 3 and constant[0] and symbolic[1] and constant[2]:
        brackets = ("(" if signs[0] == "<" else "[") + (")" if signs[1] == "<" else "]")
        return Node("named", (sides[1], _interval(sides[0], sides[2], brackets)))
    return Node("rel", tuple(sides), signs)
