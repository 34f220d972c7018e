"""Whether two answers are the same: the form first (lists, sets, tuples, relations), then the values in it."""

from __future__ import annotations

from collections.abc import Sequence

from grpo_studio.verifiers.symbolic.answer import Answer, read_answer
from grpo_studio.verifiers.symbolic.relations import same_relation
from grpo_studio.verifiers.symbolic.scalar import Leeway, same_units, same_value
from grpo_studio.verifiers.symbolic.second_opinion import agrees
from grpo_studio.verifiers.symbolic.settle import WrongError, settle
from grpo_studio.verifiers.symbolic.tree import Node, TooCostlyError, symbols

_UNEQUAL = "not equal"
_COLLECTIONS = frozenset({"group", "list", "union", "matrix", "minus", "colon"})


def difference(gold: Answer, answer: Answer, tolerance: float = 0.0) -> str | None:
    """None when the two are the same answer, else why they are not. Bounded in time; never raises."""
    if gold.plain == answer.plain:
        return None
    if gold.letter and answer.letter:
        return None if gold.letter == answer.letter else "another option"
    if gold.beside:
        return difference(read_answer(gold.beside), answer, tolerance)
    if answer.beside and not gold.letter:
        return difference(gold, read_answer(answer.beside), tolerance)
    if gold.words is not None or answer.words is not None:
        return None if gold.words == answer.words else "other words"
    if not gold.trees or not answer.trees:
        return None if agrees(gold, answer) else "it cannot be read as mathematics, and the texts differ"
    told = _differing(gold, answer, Leeway(tolerance))
    if told == _UNEQUAL and any(map(_is_algebra, (*gold.trees, *answer.trees))) and agrees(gold, answer):
        return None
    return told


def _is_algebra(node: Node) -> bool:
    """Whether sets or matrices are computed with, which `matches` does not do."""
    return any(
        part.op in ("union", "minus")
        or (part.op in ("add", "mul", "neg", "pow") and any(inner.op == "matrix" for inner in part.args))
        for part in node.walk()
    )


def _differing(gold: Answer, answer: Answer, leeway: Leeway) -> str | None:
    try:
        for one in gold.trees:
            for other in answer.trees:
                if matches(settle(one), settle(other), leeway):
                    return None
    except WrongError as error:
        return str(error)
    except TooCostlyError as error:
        return f"too costly to work out: {error}"
    except RecursionError:
        return "nested too deeply to be worked out"
    return _UNEQUAL


def matches(gold: Node, answer: Node, leeway: Leeway) -> bool:
    """Whether a settled answer has the form and the values of the settled gold. Raises TooCostlyError."""
    if gold == answer:
        return True
    if "alt" in (gold.op, answer.op):
        golds = gold.args if gold.op == "alt" else (gold,)
        answers = answer.args if answer.op == "alt" else (answer,)
        return any(matches(one, other, leeway) for one in golds for other in answers)
    if "list" in (gold.op, answer.op):
        return _lists(gold, answer, leeway)
    if "named" in (gold.op, answer.op):
        return _named(gold, answer, leeway)
    if "rel" in (gold.op, answer.op):
        return _relations(gold, answer, leeway)
    if "unit" in (gold.op, answer.op):
        return same_units(gold, answer) and matches(_bare(gold), _bare(answer), leeway)
    if gold.op in _COLLECTIONS or answer.op in _COLLECTIONS:
        return _collections(gold, answer, leeway)
    return same_value(gold, answer, leeway)


def _bare(node: Node) -> Node:
    return node.args[0] if node.op == "unit" else node


def _named(gold: Node, answer: Node, leeway: Leeway) -> bool:
    """`x = 4` is matched by `4`, by `x = 4`, and not by `y = 4` or by another equation for `x`."""
    if gold.op == answer.op:
        if "word" in (gold.args[0].op, answer.args[0].op) or gold.args[0] == answer.args[0]:
            return matches(gold.args[1], answer.args[1], leeway)
        return _has_symbols(gold) and same_relation(_as_equation(gold), _as_equation(answer), leeway)
    if gold.op == "named":
        if answer.op == "rel":
            return _has_symbols(gold) and same_relation(_as_equation(gold), answer, leeway)
        return matches(gold.args[1], answer, leeway)
    if gold.op == "rel":
        return same_relation(gold, _as_equation(answer), leeway)
    return matches(gold, answer.args[1], leeway)


def _has_symbols(named: Node) -> bool:
    return bool(symbols(named.args[1])) and named.args[1].op not in _COLLECTIONS


def _as_equation(named: Node) -> Node:
    return Node("rel", named.args, "=")


def _relations(gold: Node, answer: Node, leeway: Leeway) -> bool:
    if gold.op == answer.op:
        return same_relation(gold, answer, leeway)
    if gold.op == "rel" or answer.name != "=":
        return False
    # 'a+b = 5' answers '5'; 'x^2 = 25' only repeats a question.
    left, right = answer.args
    return not symbols(right) and not any(part.op == "num" for part in left.walk()) and matches(gold, right, leeway)


def _lists(gold: Node, answer: Node, leeway: Leeway) -> bool:
    """Items in any order, all of them and no others; against a tuple or different names the order counts."""
    for one, other in ((gold, answer), (answer, gold)):
        if one.op == "list" and other.op == "named":
            return _matching_items(gold, answer, leeway, other)
    names = [_names(gold), _names(answer)]
    if names[0] and names[1]:
        return _same_names(names[0], names[1], leeway)
    for one, other in ((gold, answer), (answer, gold)):
        if one.op == "list" and other.op not in _COLLECTIONS:  # '3/4 or 0.75'
            kept = _distinct(one.args, leeway)
            return len(kept) == 1 and matches(*((kept[0], other) if one is gold else (other, kept[0])), leeway)
    ordered = bool(names[0] or names[1]) or "()" in (gold.name, answer.name) or "matrix" in (gold.op, answer.op)
    return _sequence(_parts(gold), _parts(answer), leeway, ordered=ordered)


def _matching_items(gold: Node, answer: Node, leeway: Leeway, named: Node) -> bool:
    """A list against one name: `x = {1, 2}`, or `(x, y) = (1, 2)`."""
    name, value = named.args
    others = gold if gold.op == "list" else answer
    if value.op == "group" and value.name == "⦃⦄":
        return _sequence(others.args, value.args, leeway, ordered=False)
    if name.op != "group" or value.op != "group" or len(name.args) != len(value.args):
        return False
    by_name = dict(zip(name.args, value.args, strict=True))
    items = _names(others) or dict(zip(name.args, others.args, strict=False))
    return len(others.args) == len(items) and _same_names(by_name, items, leeway)


def _same_names(gold: dict[Node, Node], answer: dict[Node, Node], leeway: Leeway) -> bool:
    return gold.keys() == answer.keys() and all(matches(one, answer[name], leeway) for name, one in gold.items())


def _names(node: Node) -> dict[Node, Node]:
    """The values by name, of a list that gives each a different one; else nothing. `x_1` and `x_2` are one `x`."""
    if node.op != "list" or len(node.args) < 2 or any(item.op != "named" for item in node.args):
        return {}
    found = {item.args[0]: item.args[1] for item in node.args}
    bases = {name.name.partition("_")[0] if name.op == "sym" else repr(name) for name in found}
    return found if len(bases) == len(node.args) else {}


def _parts(node: Node) -> Sequence[Node]:
    if node.op == "matrix" and all(len(row.args) == 1 for row in node.args):
        return [row.args[0] for row in node.args]
    if node.op == "list" or (node.op == "group" and node.name in ("()", "⦃⦄")):
        return node.args
    return (node,)


def _collections(gold: Node, answer: Node, leeway: Leeway) -> bool:
    for one, other in ((gold, answer), (answer, gold)):
        if one.op == "group" and one.name == "⦃⦄" and other.op not in _COLLECTIONS:
            return len(one.args) == 1 and matches(one.args[0], other, leeway)
        if one.op == "matrix" and other.op == "group" and other.name == "()":
            return _sequence(_parts(gold), _parts(answer), leeway, ordered=True)
    if gold.op != answer.op:
        return False
    if gold.op == "union" or gold.name == "⦃⦄":
        return answer.name == gold.name and _covered(gold.args, answer.args, leeway)
    if gold.op == "group" and (gold.name != answer.name):
        return False
    return _sequence(gold.args, answer.args, leeway, ordered=True)


def _covered(gold: Sequence[Node], answer: Sequence[Node], leeway: Leeway) -> bool:
    """Each part has its like on the other side; repeating one adds nothing to a set."""
    return all(any(matches(one, other, leeway) for other in answer) for one in gold) and all(
        any(matches(one, other, leeway) for one in gold) for other in answer
    )


def _sequence(gold: Sequence[Node], answer: Sequence[Node], leeway: Leeway, *, ordered: bool) -> bool:
    if not ordered and 2 <= len(gold) < len(answer):  # an item said twice adds nothing, where the gold says it once
        answer = _distinct(answer, leeway)
    if len(gold) != len(answer):
        return False
    if ordered:
        return all(matches(_value(one), _value(other), leeway) for one, other in zip(gold, answer, strict=True))
    left = list(answer)
    for one in gold:
        at = next((at for at, other in enumerate(left) if matches(one, other, leeway)), None)
        if at is None:
            return False
        del left[at]
    return True


def _distinct(items: Sequence[Node], leeway: Leeway) -> list[Node]:
    kept: list[Node] = []
    for item in items:
        if not any(matches(item, other, leeway) for other in kept):
            kept.append(item)
    return kept


def _value(item: Node) -> Node:
    return item.args[1] if item.op == "named" else item
