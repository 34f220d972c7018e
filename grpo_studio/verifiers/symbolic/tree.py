"""What an answer reads as: a small tree of immutable nodes, and the two ways in which reading or comparing can end.

Expressions: `num` (value), `sym` and `const` (name), `add`, `mul`, `div`, `pow`, `root` (of args[0], index args[1]),
`neg`, `pm`, `mp`, `fact`, `fact2`, `abs`, `call` (name), `sum` and `prod` (body, symbol, lower, upper), `percent`,
`degree`, `unit` (name), `based` (name: the digits and the base).
Answers: `group` (name: its brackets, such as `(]`), `list` (no brackets: any order), `union`, `minus` (of sets),
`matrix` (rows as groups), `rel` (name: the relation signs, one character each), `colon`, `word` (name: a label),
`builder` (a set given by a condition).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction


class UnreadableError(ValueError):
    """The text is not of a form that can be compared as mathematics."""


class TooCostlyError(ValueError):
    """Working the value out would take too long or too much memory."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node; `noisy` marks a decimal with as many digits as floating point prints."""

    op: str
    args: tuple[Node, ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)
    noisy: bool = False

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.args)


def number(value: int | Fraction, *, noisy: bool = False) -> Node:
    """An exact number."""
    return Node("num", value=Fraction(value), noisy=noisy)


def symbols(node: Node) -> frozenset[str]:
    """The names of the free symbols; the index of a sum is bound."""
    bound = {part.name for part in node.walk() if part.op in ("sum", "prod")}
    return frozenset(part.name for part in node.walk() if part.op == "sym") - bound


def product(left: Node, right: Node) -> Node:
    """The product in one node, however many factors it has: a long one must not be deep."""
    factors = left.args if left.op == "mul" else (left,)
    return Node("mul", (*factors, right))
