"""The final number of a completion against the gold number, exactly."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.answer_text import (
    Statement,
    after_thinking,
    inside_answer_tags,
    last_statement,
    normalise,
)
from grpo_studio.verifiers.gold import accepted_golds
from grpo_studio.verifiers.numbers import Number, Reading, equal, last_reading, readings

_NEAR = 40
_OR = re.compile(r"\bor\b|或|还是|または|또는", re.IGNORECASE)
_AND = re.compile(r"\band\b|和|と|및", re.IGNORECASE)
_LISTED = re.compile(r"(?:[\s,;/&$€£¥*_`.()\[\]]|\band\b|和|と|및|\\(?:text\{)?)*", re.IGNORECASE)
_CHOICE_BEFORE = re.compile(r"[0-9][\s*_`$%),]*(?:\bor\s|或者?|还是|または|또는)[\s*_`$(]*$", re.IGNORECASE)
_NOT = re.compile(r"\bnot\s[\s*_`$(]*$", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\s[\s*_`$(]*$", re.IGNORECASE)
_UNIT = re.compile(r"[*_`$]*\s+[A-Za-z]+")
_REMARK = re.compile(r"(?:\\\)|[$*_`])*\s+\(")  # '18 (9 x 2)'; '5(3)' is a product
_OPERATOR = re.compile(r"\s+(?:to|times|plus|minus|over|mod|choose)\s+[$€£¥]?", re.IGNORECASE)
_WHICH_IS = re.compile(r",?\s+(?:which\s+)?(?:is|equals|gives|makes)\s+[$€£¥]?", re.IGNORECASE)
_RESULT = re.compile(
    r"\s+(?:[A-Za-z]+\s+){0,3}?(?:at|of|times|by|per)\s+[$€£¥]?[0-9][^=,;()]{0,40}(?:=|\bequals\b)\s*[$€£¥]?",
    re.IGNORECASE,
)  # '18 eggs at $2 each = $36', '40% of 50 = 20'


def check(tolerance: float) -> str | None:
    """The relative error that may be allowed."""
    return None if 0 <= tolerance < 1 else f"tolerance is {tolerance}; it must be at least 0 and below 1"


def ideal(answer: Any, **_: Any) -> str | None:
    """The gold number after a marker."""
    golds = _gold_numbers(answer)
    return None if isinstance(golds, str) else f"#### {golds[0].text}"


@verifier(
    examples=[
        ("The answer is 12.", {"answer": "12"}, 1.0),
        ("6 x 6 = 36\n#### 36", {"answer": "Six rows of six.\n#### 36"}, 1.0),
        ("Final answer: 72. (I checked it in 3 ways.)", {"answer": 72}, 1.0),
        ("So it is \\boxed{\\frac{3}{8}}", {"answer": 0.375}, 1.0),
        ("The answer is 17", {"answer": "7"}, 0.0),
        ("5-3", {"answer": "-3"}, 0.0),
        ("", {"answer": "7"}, 0.0),
        ("7", {"answer": ""}, None),
    ],
    check=check,
    ideal=ideal,
)
def math_numeric(completion: str, answer: Any, *, tolerance: float = 0.0) -> Verdict:
    """The last stated number equals the gold number: 1 or 0.

    An explicit statement (`#### 36`, 'the answer is 36', a box) outranks the last number of the text. Rationals and
    integers compare exactly, except for the noise of floating point; `tolerance` allows a relative error on top.
    A gold list holds alternatives. A gold that is missing or is not one number abstains.
    """
    golds = _gold_numbers(answer)
    if isinstance(golds, str):
        return Verdict(None, golds)
    found = _answer(completion)
    if found.number is None:
        return Verdict(0.0, found.reason, found.text or None)
    number = found.number
    if any(equal(number, gold, tolerance) for gold in golds):
        return Verdict(1.0, "", number.text)
    return Verdict(0.0, f"{number.text:.60} is not {golds[0].text:.60}", number.text)


def _answer(completion: str) -> Reading:
    text = after_thinking(normalise(completion))
    if text is None:
        return Reading(None, "", "the thinking never ends")
    text = inside_answer_tags(text)
    statement = last_statement(text)
    if statement is None:
        return _unstated(text)
    found = readings(statement.text, stated=True)
    return _stated(statement, found) or Reading(None, statement.text, "the stated answer is not one number")


def _unstated(text: str) -> Reading:
    last = last_reading(text)
    if last is None:
        return Reading(None, "", "no number")
    at = text.rfind(last.text)
    before = text[max(0, at - _NEAR) : at]
    maybe = "or" in before[-8:].lower() or not before.isascii()  # most texts hold none of the words
    if maybe and _CHOICE_BEFORE.search(before) and not _same([*readings(before)[-1:], last]):
        return Reading(None, last.text, "a choice of numbers")
    return last


def _stated(statement: Statement, found: list[Reading]) -> Reading | None:
    """The number that is stated; None when there is none, or several for one: '12 or 13', '12, 13 and 14'."""
    if not found:
        return None
    if statement.exact:
        return None if len(found) > 1 or _is_factorial(statement.text, found[0]) else found[0]
    if len(found) == 1 and "not" not in statement.text.lower():
        return found[0]
    pieces = _pieces(statement.text, found)
    kept = [(before, one) for before, one in zip(pieces, found, strict=False) if not _NOT.search(before)]
    first = kept[0][1] if kept else None
    if len(kept) < 2 or _same([one for _, one in kept]):  # '0.5 or 1/2'
        return first
    (lead, _), (between, second), *more = kept
    if _RESULT.fullmatch(between):
        return second
    if _OPERATOR.fullmatch(between):
        return more[0][1] if more and _WHICH_IS.fullmatch(more[0][0]) else None
    if _BETWEEN.search(lead) or _is_choice([before for before, _ in kept[1:]], pieces[-1]):
        return None
    return first


def _pieces(statement: str, found: list[Reading]) -> list[str]:
    """What stands in front of each reading, and what follows the last."""
    pieces = []
    for one in found:
        text = one.text if one.text in statement else one.text.lstrip("-")  # '- 4' is read as '-4'
        before, _, statement = statement.partition(text)
        pieces.append(before)
    return [*pieces, statement]


def _is_choice(between: list[str], after: str) -> bool:
    if _REMARK.fullmatch(between[0]):
        return False
    for text in between:
        if len(text) < _NEAR and _OR.search(text):
            return True
        if not _LISTED.fullmatch(text):
            return False
    unit = _UNIT.match(after) if _AND.search(between[-1]) else None
    return bool(_LISTED.fullmatch(after, unit.end() if unit else 0))


def _same(found: list[Reading]) -> bool:
    first = found[0].number
    return first is not None and all(one.number is not None and equal(first, one.number) for one in found)


def _is_factorial(text: str, reading: Reading) -> bool:
    """Whether the text ends with `5!`, which is an exclamation only in prose."""
    return text.rstrip("$ ").endswith(f"{reading.text}!")


def _gold_numbers(answer: Any) -> list[Number] | str:
    """The accepted values, or why there is none: text with no or several numbers is no number."""
    texts = accepted_golds(answer)
    if isinstance(texts, str):
        return texts
    numbers = [number for text in texts if (number := _gold_number(text)) is not None]
    return numbers or f"the gold answer is not one number: {answer!r:.100}"


@lru_cache(maxsize=1024)  # a whole group of completions shares its gold
def _gold_number(answer: str) -> Number | None:
    text = normalise(answer)
    statement = last_statement(text)
    found = readings(statement.text if statement else text, stated=True)
    return found[0].number if len(found) == 1 and not _is_factorial(text, found[0]) else None
