"""Adds to expressions what a whole answer may be: lists, sets, relations, names, matrices, functions and roots."""

from __future__ import annotations

from grpo_studio.verifiers.symbolic.parser import ExpressionParser
from grpo_studio.verifiers.symbolic.tokens import Token, tokens_of
from grpo_studio.verifiers.symbolic.tree import Node, UnreadableError, number, product

_RELATIONS = "=<>≤≥≠≈∈"
_MOST_ITEMS = 64
_LONGEST_CHAIN = 6
_JOINTS = frozenset({",", ";", "and"})
_SEVERAL_ARGUMENTS = frozenset({"gcd", "lcm", "max", "min", "binom"})
_INVERSES = frozenset({"sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh"})
_MATRICES = frozenset({"pmatrix", "bmatrix", "matrix", "vmatrix", "Bmatrix", "smallmatrix", "array"})
_NAMING = frozenset({"is", "are", "equals"})
_NEGATING = frozenset({"not", "no", "except", "unless", "if", "when", "never"})
_MANNERS = frozenset({"about", "approximately", "answer", "the", "final"})


def parse(text: str, *, tight: bool = True) -> tuple[Node, bool]:
    """The tree of a cleaned answer, and whether `tight` mattered. Raises UnreadableError unless all of it is read."""
    parser = AnswerParser(tokens_of(text), tight=tight)
    node = parser.items()
    if parser.next.kind != "end":
        raise UnreadableError(f"{parser.next.text!a:.30} out of place")
    return node, parser.ambiguous


def _bound(node: Node, index: str) -> Node:
    """The body of a sum, in which an index `i` is no imaginary unit."""
    if node.op == "const" and node.name == index:
        return Node("sym", name=index)
    return Node(node.op, tuple(_bound(part, index) for part in node.args), node.name, node.value, node.noisy)


class AnswerParser(ExpressionParser):
    """The form of whole answers."""

    def items(self, *, in_set: bool = False) -> Node:
        """Items joined by commas, semicolons, 'and', 'or'; without brackets around them their order is free.

        Semicolons part groups of items that commas join: `p=5, q=2; p=7, q=2`. A list is named after an 'and' that
        alone joins it.
        """
        groups: list[list[Node]] = [[self.item(in_set=in_set)]]
        joints: set[str] = set()
        while self.next.kind == "op" and self.next.text in _JOINTS:
            parted = False
            while self.next.kind == "op" and self.next.text in _JOINTS:  # '1, 2, and 3'
                joints.add(self.next.text)
                parted = parted or self.next.text == ";"
                self.at += 1
            if self.next.kind == "end":
                break
            if parted:
                groups.append([])
            groups[-1].append(self.item(in_set=in_set))
            if sum(map(len, groups)) > _MOST_ITEMS:
                raise UnreadableError(f"more than {_MOST_ITEMS} items")
        if all(len(group) == 1 for group in groups):
            groups = [[group[0] for group in groups]]
        name = "and" if joints == {"and"} else ""
        lists = [group[0] if len(group) == 1 else Node("list", tuple(group), name) for group in groups]
        return lists[0] if len(lists) == 1 else Node("list", tuple(lists))

    def item(self, *, in_set: bool = False) -> Node:
        """One item: a chain of relations, a ratio or a time, or a value."""
        if self.next.kind == "op" and self.next.text in ("=", "≈"):  # '= 5'
            self.at += 1
        label = self._label()
        if label is not None:
            return Node("rel", (label, self.item()), name="=")
        bars, self.in_bars = self.in_bars, self.in_bars or in_set
        sides, signs = [self._side(in_set)], []
        while self.next.kind == "op" and self.next.text in _RELATIONS:
            signs.append(self.next.text)
            self.at += 1
            sides.append(self._side(in_set))
            if len(sides) > _LONGEST_CHAIN:
                raise UnreadableError("a long chain of relations")
        self.in_bars = bars
        if in_set and self.next.kind == "op" and self.next.text in (":", "mid", "|"):
            self.at += 1
            return Node("builder", (self.items(),))
        return Node("rel", tuple(sides), name="".join(signs)) if signs else sides[0]

    def set_value(self) -> Node:
        """Unions and differences of sets, of single values mostly."""
        left = self.sum()
        while self.next.kind == "op" and self.next.text in ("cup", "without"):
            joined = "union" if self.next.text == "cup" else "minus"
            self.at += 1
            left = Node(joined, (left, self.sum()))
        return left

    def _side(self, in_set: bool) -> Node:
        value = self.set_value()
        return self._ratio(value) if self.is_next(":") and not in_set else value

    def _ratio(self, first: Node) -> Node:
        parts = [first]
        while self.take(":"):
            parts.append(self.sum())
        last = parts[-1]
        if last.op == "unit":
            return Node("unit", (Node("colon", (*parts[:-1], last.args[0])),), name=last.name)
        return Node("colon", tuple(parts))

    def _label(self) -> Node | None:
        """Words before the answer: 'Area = 9', 'The answer is 9', 'about 9'."""
        end = self.at
        while end < len(self.tokens) and self.tokens[end].kind in ("word", "sym") and end - self.at < 8:
            if self.tokens[end].text.lower() in _NAMING:
                break
            end += 1
        named = self.tokens[self.at : end]
        wordy = any(token.kind == "word" and len(token.text) > 1 for token in named)
        if not wordy or end >= len(self.tokens) or any(token.text.lower() in _NEGATING for token in named):
            return None
        after = self.tokens[end]
        if after.text.lower() in _NAMING or (after.kind == "op" and after.text in "=:≈"):
            self.at = end + 1
            return Node("word", name=" ".join(token.text for token in named).lower())
        if all(token.text.lower() in _MANNERS for token in named):
            self.at = end
            return Node("word", name="")
        return None

    def command(self, token: Token) -> Node:
        """Functions with their arguments, and the LaTeX commands that take braces."""
        if token.kind == "func":
            return self._function(token.text)
        match token.text:
            case "frac":
                return Node("div", (self.argument(), self.argument()))
            case "sqrt":
                return self._root()
            case "binom":
                return Node("call", (self.argument(), self.argument()), name="binom")
            case "sum" | "prod":
                return self._series(token.text)
            case "begin":
                return self._matrix()
            case "overline":
                return self._overlined()
        raise UnreadableError(f"the command {token.text!a:.30}")

    def argument(self) -> Node:
        """The argument of a command: a braced expression, or one digit or symbol."""
        token = self.next
        if token.kind == "num" and len(token.text) > 1 and token.text.isdigit():
            self.tokens[self.at : self.at + 1] = [Token("num", token.text[0]), Token("num", token.text[1:])]
        if token.kind == "op" and token.text not in "({|⟨⌊⌈":
            raise UnreadableError("an argument is missing")
        return self.atom()

    def _root(self) -> Node:
        index = number(2)
        if self.take("["):
            index = self.sum()
            self.need("]")
        # TeX reads '\sqrt12' as root 1 times 2; people never mean that.
        inner = self.atom() if self.next.kind == "num" else self.argument()
        return Node("root", (inner, index))

    def _function(self, name: str) -> Node:
        if name in ("sqrt", "cbrt"):
            return Node("root", (self.argument(), number(2 if name == "sqrt" else 3)))
        base = None
        if name == "log" and self.take("_"):
            base = self.argument()
        raised = self.exponent() if self.take("^") else None
        arguments = self._arguments(name)
        if raised is not None and raised == Node("neg", (number(1),)) and name in _INVERSES:
            return Node("call", arguments, name="arc" + name if not name.endswith("h") else "ar" + name)
        if base is not None:
            arguments = (*arguments, base)
        node = Node("abs", arguments) if name == "abs" else Node("call", arguments, name=name)
        return node if raised is None else Node("pow", (node, raised))

    def _arguments(self, name: str) -> tuple[Node, ...]:
        """`(x)` and `{x}` end the argument; without them it goes on as far as its product: `\\sin 2x`."""
        if self.next.kind == "op" and self.next.text in ("(", "{", "[", "|"):
            inner = self.atom()
            several = inner.op == "group" and name in _SEVERAL_ARGUMENTS
            return inner.args if several else (inner,)
        inner = self.factor()
        while self._begins_factor() and self.next.kind != "func" and not self.is_next("("):
            inner = product(inner, self.factor())
        return (inner,)

    def _series(self, name: str) -> Node:
        lower = upper = None
        index = ""
        for _ in range(2):
            if self.take("_"):
                self.need("{")
                index = self.atom().name
                self.need("=")
                lower = self.sum()
                self.need("}")
            elif self.take("^"):
                upper = self.argument()
        if lower is None or upper is None or not index:
            raise UnreadableError("a sum without its bounds")
        return Node(name, (_bound(self.term(), index), lower, upper), name=index)

    def _overlined(self) -> Node:
        inner = self.argument()
        names = [part for part in inner.walk() if part.op != "mul"]
        if all(part.op == "sym" for part in names) and len(names) > 1:  # the segment AB
            return inner
        return Node("call", (inner,), name="conjugate")

    def _matrix(self) -> Node:
        kind = self._environment()
        if kind not in _MATRICES:
            raise UnreadableError(f"the environment {kind!a:.30}")
        if kind == "array" and self.take("{"):
            self._index_of_columns()
        rows: list[list[Node]] = [[]]
        while self.next.text != "end":
            rows[-1].append(self.sum())
            if self.take("⏎"):
                rows.append([])
            elif not self.take("&") and self.next.text != "end":
                raise UnreadableError("a matrix that is not closed")
        if self.next.kind != "cmd":
            raise UnreadableError("a matrix that is not closed")
        self.at += 1
        self._environment()
        cells = [row for row in rows if row]
        if not cells or len({len(row) for row in cells}) != 1 or kind == "vmatrix":
            raise UnreadableError("a matrix with rows of different lengths")
        return Node("matrix", tuple(Node("group", tuple(row), name="row") for row in cells))

    def _environment(self) -> str:
        self.need("{")
        start = self.at
        self._index_of_columns()
        return "".join(token.text for token in self.tokens[start : self.at - 1])

    def _index_of_columns(self) -> None:
        while self.next.kind != "end" and not self.is_next("}"):
            self.at += 1
        self.need("}")
