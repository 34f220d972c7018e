"""The unit or label after a number: `9 cm`, `9\\text{ cm}^2`, `60 km/h`, `12 apples`, `5 million dollars`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grpo_studio.verifiers.symbolic import words
from grpo_studio.verifiers.symbolic.tokens import Token
from grpo_studio.verifiers.symbolic.tree import Node, UnreadableError, number

if TYPE_CHECKING:
    from grpo_studio.verifiers.symbolic.parser import ExpressionParser

_MOST_WORDS = 5
_KNOWN = frozenset(words.UNITS.values())


def is_unit(parser: ExpressionParser, token: Token) -> bool:
    """Whether this word, which follows a factor, is a unit or a label and no factor itself."""
    if token.kind == "sym":  # typed: '15 m', but '15m' is a product
        return token.spaced and token.text in words.UNIT_LETTERS and _plain_number_before(parser)
    if token.kind != "word":
        return False
    return len(token.text) > 1 or token.text in words.UNIT_LETTERS


def with_unit(parser: ExpressionParser, node: Node) -> Node:
    """The node inside its unit, or as it is when no unit follows. Raises UnreadableError for words that change it."""
    if not is_unit(parser, parser.next):
        return node
    found: list[str] = []
    while len(found) <= _MOST_WORDS and (_goes_on(parser, found) or (not found and is_unit(parser, parser.next))):
        word = parser.next.text
        lowered = word.lower()
        parser.at += 1
        if lowered in words.SCALE_WORDS:
            node = Node("mul", (node, number(words.SCALE_WORDS[lowered])))
        elif lowered in words.PERCENT_WORDS:
            node = Node("percent", (node,))
        elif lowered in words.DEGREE_WORDS:
            node = Node("degree", (node,))
        elif lowered in words.CHANGING_WORDS and not (found and lowered in words.JOINING_WORDS):
            raise UnreadableError(f"the word {word!a:.30}")
        else:
            found.append(_power(parser, words.UNITS.get(word, words.UNITS.get(lowered, lowered))))
            after = parser.tokens[parser.at + 1] if parser.at + 1 < len(parser.tokens) else None
            if parser.is_next("/") and after is not None and after.kind in ("word", "sym"):
                parser.at += 1
                found.append("per")
    return Node("unit", (node,), name=" ".join(found)) if found else node


def canonical(name: str) -> str | None:
    """The unit by one name, or None when it is a label ('apples'), which says nothing that could be compared."""
    parts = name.replace("^2", " squared").replace("^3", " cubed").split()
    if not any(part in _KNOWN for part in parts):
        return None
    powers = {"square": "squared", "sq": "squared", "cubic": "cubed"}
    return " ".join(sorted(powers.get(part, part) for part in parts if part in _KNOWN | words.JOINING_WORDS))


def _goes_on(parser: ExpressionParser, found: list[str]) -> bool:
    token = parser.next
    return token.kind == "word" or (found[-1:] == ["per"] and token.text in words.UNIT_LETTERS)


def _power(parser: ExpressionParser, name: str) -> str:
    if parser.is_next("^"):
        after = parser.tokens[parser.at + 1 : parser.at + 4]
        digits = [token.text for token in after if token.kind == "num"][:1]
        braced = bool(after) and after[0].text == "{"
        if digits and (after[0].text == digits[0] or braced):
            parser.at += 4 if braced else 2
            return f"{name}^{digits[0]}"
    return name


def _plain_number_before(parser: ExpressionParser) -> bool:
    before = parser.tokens[parser.at - 1] if parser.at else None
    return before is not None and before.kind == "num" and parser.at + 1 == len(parser.tokens)
