"""The parts of a number: its digits, and what changes their value: '1.5 million', '36万', 'minus 7', '5 squared'."""

from __future__ import annotations

import re
from fractions import Fraction
from math import prod
from typing import Final

_WORDS: Final = {
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
    "lakh": 10**5,
    "crore": 10**7,
}
_SIGNS: Final = {
    **{"百": 100, "千": 10**3, "万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8, "兆": 10**12},
    **{"백": 100, "천": 10**3, "만": 10**4, "억": 10**8, "조": 10**12},
}
# Most words are none of these: the first letter says so at once.
_FIRST = "".join(sorted({word[0] + word[0].upper() for word in _WORDS}))
_SCALE_WORD = rf"(?=[{_FIRST}])(?i:{'|'.join(_WORDS)})s?(?![A-Za-z])"
_CHANGING_WORD = (
    r"(?=[fscth])(?:factorial|(?:squar|cub)ed(?![ ][A-Za-z])|(?:ten|hundred|thousand|million)ths?)(?![A-Za-z])"
)
CHANGES: Final = rf"(?:{_SCALE_WORD}|{_CHANGING_WORD})"
# '2x', '5k' and '3i' are not 2, 5 and 3; single-letter units are.
NOT_ALONE: Final = re.compile(
    rf"[ ]?(?:{_CHANGING_WORD}|_[0-9{{\\]|!(?=[$}}^]|\\[)\]]|[ ]?(?:[=/\u00d7·]|\\times|\\cdot))|"
    r"\\sqrt|√|\\pi|π|\^(?!\{?\\circ)|\*\*(?=[0-9A-Za-z])|(?![mgshlLdCFKVAWJN])[A-Za-z](?![A-Za-z]))"
)
_PLAIN = re.compile(r"[0-9]++|[0-9]*\.[0-9]++")
_GROUPED = re.compile(
    r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}|[0-9]{1,3}(?:_[0-9]{3})+)(?:\.[0-9]+)?"
)
# '5 hundred-dollar bills' are five; 千克 and 兆瓦 are units.
SCALES: Final = re.compile(
    rf"(?:[ ]?{_SCALE_WORD}(?!-)|[{''.join(_SIGNS)}](?:(?<![百千兆])|(?![克米瓦卡焦赫伏帕牛欧字分])))++"
)
_ONE_SCALE = re.compile(rf"(?i:{'|'.join(_WORDS)})|[{''.join(_SIGNS)}]")
_MINUS = ("minus", "Minus", "negative", "Negative")
# 'minus' behind anything else may subtract.
_SIGN = re.compile(r"(?:^|[=:({*_$`]|\b(?:is|are|was|be|equals|or)[ ])[\s*_$`]{0,4}[Mm]inus$|\b[Nn]egative$")
_REACH = 24


def scale_of(words: str) -> int:
    """The factor that a match of `SCALES` stands for."""
    found = (one[0].lower() for one in _ONE_SCALE.finditer(words))
    return prod(_WORDS.get(one) or _SIGNS[one] for one in found)


def minus_word(text: str, start: int) -> int | None:
    """Where the word for the sign of the number at `start` begins, or None when there is none."""
    before = text[max(0, start - _REACH) : start].rstrip("$€£¥₹ ")
    if not before.endswith(_MINUS):
        return None
    sign = _SIGN.search(before)
    if sign is None or text[start - 1] not in "$€£¥₹ ":
        return None
    length = len("minus") if before.endswith(_MINUS[:2]) else len("negative")
    return max(0, start - _REACH) + len(before) - length


def decimal_value(digits: str) -> Fraction | None:
    """The value of digits with their separators, or None when they are not in English notation."""
    negative = digits.startswith("-")
    digits = digits.lstrip("-").replace(" ", "")
    if not _PLAIN.fullmatch(digits):
        if not _GROUPED.fullmatch(digits):
            return None
        digits = digits.replace(",", "").replace("_", "")
    value = Fraction(digits) if "." in digits else Fraction(int(digits))
    return -value if negative else value
