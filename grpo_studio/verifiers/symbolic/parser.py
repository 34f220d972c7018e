"""Reads the tokens of one expression: sums, products, powers, roots, functions, brackets. All tokens, or an error.

`a/bc` means `a/(bc)` to some and `(a/b)c` to others: `tight` chooses, and `ambiguous` says that it mattered.
"""

from __future__ import annotations

from grpo_studio.verifiers.symbolic import units, words
from grpo_studio.verifiers.symbolic.numerals import is_noisy, mixed_part, number_of
from grpo_studio.verifiers.symbolic.tokens import Token
from grpo_studio.verifiers.symbolic.tree import Node, UnreadableError, number, product

DEEPEST = 40
_ATOMS = frozenset({"sym", "const", "func", "cmd", "num"})
_END = Token("end", "")
_PAIRS = {"⟨": "⟩", "⌊": "⌋", "⌈": "⌉", "⦃": "⦄", "{": "}"}


class ExpressionParser:
    """A recursive descent over tokens; the form of whole answers is added by AnswerParser."""

    def __init__(self, tokens: list[Token], *, tight: bool = True) -> None:
        self.tokens = tokens
        self.at = 0
        self.tight = tight
        self.ambiguous = False
        self.in_bars = False
        self.depth = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def is_next(self, text: str) -> bool:
        token = self.next
        return token.kind == "op" and token.text == text

    def take(self, text: str) -> bool:
        found = self.is_next(text)
        self.at += found
        return found

    def need(self, text: str) -> None:
        if not self.take(text):
            raise UnreadableError(f"{text!a} is missing")

    def sum(self) -> Node:
        """Terms joined by + - and the two double signs."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise UnreadableError(f"nested deeper than {DEEPEST} levels")
        terms = [self._signed_term()]
        while self.next.kind == "op" and self.next.text in "+-±∓":
            terms.append(self._signed_term())
        self.depth -= 1
        return terms[0] if len(terms) == 1 else Node("add", tuple(terms))

    def _signed_term(self) -> Node:
        signs: list[str] = []
        while self.next.kind == "op" and self.next.text in "+-±∓" and len(signs) < DEEPEST:
            signs.append(self.next.text)
            self.at += 1
        term = self.term()
        for sign in reversed(signs):
            if sign != "+":
                term = Node({"-": "neg", "±": "pm", "∓": "mp"}[sign], (term,))
        return term

    def term(self) -> Node:
        """Factors joined by * / mod, or by nothing at all; a unit may end it."""
        left = self._product()
        while self.next.kind == "op" and self.next.text in ("*", "/", "mod"):
            operator = self.next.text
            self.at += 1
            if operator == "/":
                right = self._product(divisor=True)
                left = Node("div", (left, right))
                while not self.tight and self._begins_factor():
                    left = product(left, self.factor())
            else:
                right = self._product()
                left = product(left, right) if operator == "*" else Node("call", (left, right), name="mod")
        return units.with_unit(self, left)

    def _product(self, *, divisor: bool = False) -> Node:
        """Factors side by side."""
        left = self.factor()
        while self._begins_factor():
            if divisor:
                self.ambiguous = True
                if not self.tight:
                    return left
            applied = self.is_next("(") and left.op in ("sym", "pow") and self.tokens[self.at - 1].text != "*"
            right = self.factor()
            left = Node("mul", (left, right), name="applied") if applied else product(left, right)
        return left

    def _begins_factor(self) -> bool:
        token = self.next
        if token.kind == "num":
            return self.at > 0 and self.tokens[self.at - 1].text in (")", "}") and not token.spaced
        if token.kind == "word":
            return not units.is_unit(self, token) and len(token.text) == 1
        if token.kind == "op":
            return token.text in ("(", "{", "⌊", "⌈") or (token.text == "|" and not self.in_bars)
        return token.kind in _ATOMS and token.text != "end" and not units.is_unit(self, token)

    def factor(self) -> Node:
        """A power, with its sign: in a product as in `2 * -3`."""
        if self.next.kind == "op" and self.next.text in "+-" and self.depth < DEEPEST:
            negative = self.next.text == "-"
            self.at += 1
            self.depth += 1
            inner = self.factor()
            self.depth -= 1
            return Node("neg", (inner,)) if negative else inner
        base = self.postfix(self.atom())
        if not self.take("^"):
            return base
        raised = Node("pow", (base, self.exponent()))
        if self.is_next("^"):
            raise UnreadableError("a double exponent")
        return self.postfix(raised)

    def exponent(self) -> Node:
        negative = self.take("-")
        self.take("+")
        inner = self.postfix(self.atom(), marks="!")
        if self.tokens[self.at - 1].text != "}" and self.is_next("^"):  # typed: 2^3^2 is 2^(3^2)
            self.at += 1
            self.depth += 1
            if self.depth > DEEPEST:
                raise UnreadableError(f"nested deeper than {DEEPEST} levels")
            inner = Node("pow", (inner, self.exponent()))
            self.depth -= 1
        return Node("neg", (inner,)) if negative else inner

    def postfix(self, node: Node, marks: str = "!%°") -> Node:
        """Factorials, the percent sign, the degree sign."""
        while self.next.kind == "op" and self.next.text in marks:
            mark = self.next.text
            self.at += 1
            if mark == "!" and self.take("!"):
                mark = "!!"
            node = Node({"!": "fact", "!!": "fact2", "%": "percent", "°": "degree"}[mark], (node,))
            if mark == "°" and self.next.kind in ("sym", "word") and self.next.text in "CF":
                node = Node("unit", node.args, name=self.next.text.lower())
                self.at += 1
        return node

    def atom(self) -> Node:
        token = self.next
        self.at += 1
        match token.kind:
            case "num":
                return self._number(token)
            case "sym":
                return self.subscripted(token.text)
            case "const":
                return Node("const", name=token.text)
            case "word":
                return self._word(token)
            case "currency":
                return Node("unit", (self.factor(),), name=token.text)
            case "func" | "cmd":
                return self.command(token)
        if token.text in ("(", "[", "{", "⦃", "⟨", "⌊", "⌈", "|"):
            return self.bracket(token.text)
        raise UnreadableError("an operand is missing" if token.kind != "op" else f"{token.text!a} out of place")

    def command(self, token: Token) -> Node:
        """Functions and LaTeX commands; see AnswerParser."""
        raise UnreadableError(f"the command {token.text}")

    def bracket(self, opening: str) -> Node:
        """What brackets hold, and the brackets as the name when there is more than one item or it is a set."""
        if opening == "|":
            return self._absolute()
        outer, self.in_bars = self.in_bars, False
        closings = (")", "]") if opening in "([" else (_PAIRS[opening],)
        if opening == "⦃" and self.take("⦄"):
            self.in_bars = outer
            return Node("const", name="empty")
        inner = self.items(in_set=opening == "⦃")
        closing = self.next.text
        if self.next.kind != "op" or closing not in closings:
            raise UnreadableError("a bracket does not close")
        self.at += 1
        self.in_bars = outer
        if opening in "⌊⌈":
            return Node("call", (inner,), name="floor" if opening == "⌊" else "ceil")
        if inner.op == "list":  # typed: '{1,2}' is a set too
            return Node("group", inner.args, name="⦃⦄" if opening in "⦃{" else opening + closing)
        if opening == "⦃" and inner.op != "builder":
            return Node("group", (inner,), name="⦃⦄")
        if inner.op == "builder":
            return inner.args[0]
        if opening in "([" and "([".index(opening) != ")]".index(closing):
            raise UnreadableError("brackets that do not match")
        return inner

    def items(self, *, in_set: bool = False) -> Node:
        """The content of brackets; see AnswerParser."""
        return self.sum()

    def subscripted(self, name: str) -> Node:
        """A symbol with its index and its primes."""
        if self.take("_"):
            name += "_" + self._index()
        while self.take("'"):
            name += "'"
        return Node("sym", name=name)

    def _index(self) -> str:
        """The text of a subscript."""
        if not self.take("{"):
            token = self.next
            if token.kind not in ("num", "sym", "const", "word"):
                raise UnreadableError("an index is missing")
            self.at += 1
            return token.text
        start = self.at
        while self.next.kind != "end" and not self.is_next("}"):
            self.at += 1
        self.need("}")
        return "".join(token.text for token in self.tokens[start : self.at - 1])

    def _absolute(self) -> Node:
        outer, self.in_bars = self.in_bars, True
        inner = self.sum()
        self.need("|")
        self.in_bars = outer
        return Node("abs", (inner,))

    def _word(self, token: Token) -> Node:
        if len(token.text) == 1:
            return self.subscripted(token.text)
        if token.text.lower() in words.NUMBER_WORDS:
            return number(words.NUMBER_WORDS[token.text.lower()])
        raise UnreadableError(f"the word {token.text!a:.30}")

    def _number(self, token: Token) -> Node:
        value = number_of(token.text)
        if self.take("_"):
            return Node("based", name=f"{token.text}_{self._index()}")
        if token.text.isdigit() and (mixed := mixed_part(self.tokens, self.at)):
            self.at += mixed[1]
            return number(value + mixed[0])
        return number(value, noisy=is_noisy(token.text))
