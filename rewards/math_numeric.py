"""The final number of a completion against the gold number, exactly."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.answer_text import after_thinking, inside_answer_tags, last_statement, normalise
from grpo_studio.verifiers.gold import accepted_golds
from grpo_studio.verifiers.numbers import Number, Reading, equal, last_reading, readings

_NEAR = 40
_OR = re.compile(r"\bor\b|或|还是|または|또는", re.IGNORECASE)
_LISTED = re.compile(r"(?:[\s,;/&$€£¥*_`.()\[\]]|\band\b|和|と|및|\\(?:text\{)?)*", re.IGNORECASE)


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
        return last_reading(text) or Reading(None, "", "no number")
    found = readings(statement.text, stated=True)
    if not found or (len(found) > 1 and (statement.exact or _is_choice(statement.text, found))):
        return Reading(None, statement.text, "the stated answer is not one number")
    return found[0]


def _is_choice(statement: str, found: list[Reading]) -> bool:
    """Whether several numbers are stated for one: '12 or 13', or nothing but a list, '12, 13 and 14'."""
    first = found[0].number
    if first is not None and all(one.number is not None and equal(first, one.number) for one in found):
        return False  # '0.5 or 1/2'
    _, _, rest = statement.partition(found[0].text)
    between = rest.partition(found[1].text)[0]
    if len(between) < _NEAR and _OR.search(between):
        return True
    listed = statement
    for reading in found:
        listed = listed.replace(reading.text, " ", 1)
    return bool(_LISTED.fullmatch(listed))


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
    return found[0].number if len(found) == 1 else None
