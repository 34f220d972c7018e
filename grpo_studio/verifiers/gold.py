"""Reads the gold of a row, whatever type its column has, as the texts of the accepted answers.

    golds = accepted_golds(answer)
    if isinstance(golds, str):
        return Verdict(None, golds)  # the reason why there is no gold; never a zero

Data sets give text, integers, floats (pandas turns a column of integers with one gap into floats), truth values and
lists. An object holds more than an answer: which of its fields is meant is for whoever maps the columns to say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

LARGEST_BITS: Final = 1330
"""About 400 digits. Longer integers are refused: Python itself refuses to print one of over 4,300 digits."""
_FIELDS_SHOWN = 6


def accepted_golds(answer: Any) -> tuple[str, ...] | str:
    """The accepted answers, each stripped and not empty, without repeats; or, as a `str`, why there is none.

    `4.0` reads as '4' and `1e23` as its 24 digits. True reads as 'True' and 'true'. A list holds alternatives: those
    that cannot be read are left out, and a list of none that can has no gold. None, NaN, an infinity, an empty text
    and an object have none.
    """
    if not isinstance(answer, (list, tuple)):
        return _one(answer)
    texts: list[str] = []
    reason = "the gold answer is an empty list"
    for item in answer:
        read = "the gold answer is a list of lists" if isinstance(item, (list, tuple)) else _one(item)
        if isinstance(read, str):
            reason = read
        else:
            texts.extend(read)
    return tuple(dict.fromkeys(texts)) or reason


def _one(answer: Any) -> tuple[str, ...] | str:
    if isinstance(answer, str):
        text = answer.strip()
        return (text,) if text else "the gold answer is empty"
    if answer is None:
        return "the gold answer is missing"
    if isinstance(answer, bool):
        return (str(answer), str(answer).lower())
    if isinstance(answer, float):
        if not math.isfinite(answer):
            return f"the gold answer is {answer}, not a finite number"
        return (f"{Decimal(float.__repr__(answer + 0.0)):.0f}" if answer.is_integer() else str(answer),)
    if isinstance(answer, int):
        too_long = answer.bit_length() > LARGEST_BITS
        return "the gold answer is an integer of over 400 digits" if too_long else (str(answer),)
    if isinstance(answer, Mapping):
        fields = ", ".join(f"'{name!s:.40}'" for name in list(answer)[:_FIELDS_SHOWN]) or "no fields"
        return f"the gold answer is an object with {fields}; choose the field that holds the answer"
    return f"the gold answer is a {type(answer).__name__}, which holds no answer"
