"""Reads numbers out of prose, exactly, and compares them. Linear in the length of the text.

Policies, all on the side of never guessing:
- English notation: `1,250.75`, also `1 250`, `1_250`, `12,34,567`; `1.250,75` and `0,5` are not numbers here;
- one number: `3/8`, `3 1/2`, `\\frac{3}{8}`, `6.02e23`, `6.02 x 10^23`, `$-4`, `35%`, `1.5 million`, `36万`;
- `5-3`, `3-4`, `1:30`, `2024-05-12`, `2 * 5` are expressions, not numbers: they have no value here, unless
  an equals sign gives it (`5-3=2`). Neither have `2x`, `3\\sqrt{2}`, `2\\pi`, `1011_2`, `5 factorial`;
- over 400 digits or an exponent over 400 is no number: nothing here can be made slow or large by a text;
- `35%` equals 35, 35% and 0.35, but 3500% does not equal 35%.
"""

from __future__ import annotations

import re
from collections import deque
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from grpo_studio.verifiers.number_parts import CHANGES, NOT_ALONE, SCALES, decimal_value, minus_word, scale_of

LARGEST_EXPONENT = 400
MOST_DIGITS = 400
_LAST_TOKENS = 256  # only the end of a text is ever its answer
# A double prints 15 to 17 significant digits; fewer were chosen by a person and mean what they say.
_NOISY_DIGITS = 15
_NOISE_RELATIVE = Fraction(1, 10**12)
_NOISE_ABSOLUTE = Fraction(1, 10**6)

_RUN = r"(?:[0-9](?:[.,_]?[0-9])*+|(?<![.0-9A-Za-z])\.[0-9]++)"
_TIMES = r"(?:\u00d7|x|X|\*|·|⋅|\\times|\\cdot)"
_TOKEN = re.compile(
    rf"""
      (?: (?P<frac_whole>[0-9]++) [ ]{{0,2}} )? \\[dtc]?frac \s{{0,2}}
          (?: \{{ [ ]{{0,3}} (?P<frac_top>-?{_RUN}) [ ]{{0,3}} \}} \s{{0,2}}
              \{{ [ ]{{0,3}} (?P<frac_low>-?{_RUN}) [ ]{{0,3}} \}}
            | (?P<digit_top>[0-9]) [ ]? (?P<digit_low>[0-9]) )
    | (?: (?P<mantissa>{_RUN}) [ ]{{0,2}} {_TIMES} [ ]{{0,2}} )?
          10 [ ]{{0,2}} (?:\^|\*\*) [ ]{{0,2}} [({{]{{0,2}} (?P<power>[+-]?[0-9]++) [)}}]{{0,2}}
    | (?P<mixed_whole>[0-9]++) [ ]{{1,2}} (?P<mixed_top>[0-9]++) / (?P<mixed_low>[0-9]++) (?!\.?[0-9])
    | (?P<top>{_RUN}) [ ]{{0,2}} / [ ]{{0,2}} (?P<low>-?{_RUN})
    | (?<![0-9][ ]) (?P<spaced>[1-9][0-9]{{0,2}} (?:[ ][0-9]{{3}})++ (?![0-9]) (?:\.[0-9]++)? (?![,.]?[0-9]))
    | (?P<plain>{_RUN}) (?: [eE] (?P<exponent>[+-]?[0-9]++) (?![A-Za-z0-9]) )?
    """,
    re.VERBOSE,
)
# Text that holds one whole number, and nothing that could make it part of a name or an expression.
_SIMPLE = re.compile(
    r"(?:[A-Za-z]{1,20}[ ]){0,12}+ (?<![Mm]inus[ ]) (?<![Nn]egative[ ]) \$?"
    r"(?P<number>-?(?:[0-9]{1,18}|[1-9][0-9]{0,2}(?:,[0-9]{3}){1,5}))"
    rf"(?![ ]{CHANGES})"
    r"(?:[ ][A-Za-z]{2,20}(?:,?[ ][A-Za-z]{1,20}){0,12}+)? [.!?]?\s*",
    re.VERBOSE,
)
# Neither a number nor what joins two to an expression holds two words of letters side by side.
_WORDS = re.compile(r".*[A-Za-z] (?=[A-Za-z])", re.DOTALL)
_NO_DIGITS = "".join(character for character in map(chr, range(128)) if not character.isdigit())
_TAIL = 120
_WORD_BEFORE = re.compile(r"(\\?)([A-Za-z]+)$")
_EMPHASIS = re.compile(r"(?<![^\s*(])_[^_\n]{1,60}_(?![A-Za-z0-9{])")  # '_72_'
_CURRENCY_CODES = frozenset({"USD", "EUR", "GBP", "INR", "CAD", "AUD", "CHF", "US", "RM", "Rs"})
_ROOT_BEFORE = re.compile(r"(?:√|\\sqrt\{?|sqrt\(|\\pm|±)\s?$")
_POWER_BEFORE = re.compile(r"\^[{(]?-?$")  # the 2 of 'cm^2' is no number of its own
_PERCENT = re.compile(r"[ ]?\\?%")
_SPACED_MINUS = re.compile(r"^([\s*_`$]*)-\s+(?=[\d.$])")
_EQUALS = r"(?:=|≈|\\approx)"
_GAP = re.compile(
    rf"""(?: ! | _\{{?[0-9]{{1,2}}\}}? )?
         [ \t)\]}}$\\%]* (?: (?:[A-Za-z]{{1,20}}[ \t]*)?{_EQUALS} | {_TIMES} | \\div | \*\* | [-+/÷^:] )
         [ \t({{\[$+]*""",
    re.VERBOSE,
)


class Number(NamedTuple):
    """An exact value as it was written; `noisy`: a decimal as long as those that floating point prints."""

    value: Fraction
    text: str
    percent: bool = False
    noisy: bool = False


class Reading(NamedTuple):
    """What one stretch of text reads as: a number, or None with the reason it is not one."""

    number: Number | None
    text: str
    reason: str = ""


class _Token(NamedTuple):
    start: int
    end: int
    number: Number | None
    reason: str


def readings(text: str, *, stated: bool = False) -> list[Reading]:
    """The numbers and expressions of normalised text, in order; of a long text, those of its last 256 tokens.

    `stated`: the text is an explicit answer, so a leading '- 4' is minus four and not an item of a list.
    """
    if simple := _SIMPLE.fullmatch(text):
        return [_simple_reading(simple)]
    if stated and "-" in text:
        text = _SPACED_MINUS.sub(r"\1-", text)
    return [_reading(text, chain) for chain in _chains(text, 0)]


def last_reading(text: str) -> Reading | None:
    """The last of `readings(text)`, or None; of a long text only its end is read."""
    end = len(text.rstrip(_NO_DIGITS))
    words = _WORDS.match(text, max(0, end - _TAIL), end)
    start = words.end() if words else 0
    if simple := _SIMPLE.fullmatch(text, start):
        return _simple_reading(simple)
    chains = _chains(text, start) or (_chains(text, 0) if start else [])
    return _reading(text, chains[-1]) if chains else None


def _simple_reading(match: re.Match[str]) -> Reading:
    text = match["number"]
    return Reading(Number(Fraction(int(text.replace(",", ""))), text), text)


def _chains(text: str, start: int) -> list[list[_Token]]:
    """The tokens from `start` on; those that operators and equals signs join are one chain."""
    chains: list[list[_Token]] = []
    for match in deque(_TOKEN.finditer(text, start), maxlen=_LAST_TOKENS):
        token = _token(text, match)
        if token is None:
            continue
        last = chains[-1][-1].end if chains else 0
        compound = text[last - 1].isalpha() and text[last : token.start] in ("", " ")  # '3万5', '2 thousand 5'
        if chains and (compound or _GAP.fullmatch(text[last : token.start][:60])):
            chains[-1].append(token)
        elif not _POWER_BEFORE.search(text[max(0, token.start - 3) : token.start]):
            chains.append([token])
    return chains


def equal(left: Number, right: Number, tolerance: float = 0.0) -> bool:
    """Exact equality of rationals; noise of floating point is forgiven, and `tolerance` (relative) on request."""
    if left.percent == right.percent:
        return _close(left, right, left.value, right.value, tolerance)
    hundredth = Fraction(1, 100)
    share, plain = (left, right) if left.percent else (right, left)
    return any(_close(share, plain, share.value * scale, plain.value, tolerance) for scale in (Fraction(1), hundredth))


def _close(left: Number, right: Number, a: Fraction, b: Fraction, tolerance: float) -> bool:
    if a == b:
        return True
    difference, size = abs(a - b), max(abs(a), abs(b))
    if (left.noisy or right.noisy) and difference <= _NOISE_RELATIVE * size:
        whole = a.denominator == 1 or b.denominator == 1
        return not whole or difference <= _NOISE_ABSOLUTE  # 100000000000000.4 is not a noisy integer
    return difference <= Fraction(tolerance) * size if tolerance else False


def _reading(text: str, chain: list[_Token]) -> Reading:
    """The value of `a op b = c`: of its sides, the last that is one number."""
    whole = text[chain[0].start : chain[-1].end]
    sides: list[list[_Token]] = [[chain[0]]]
    for before, token in pairwise(chain):
        if re.search(_EQUALS, text[before.end : token.start]):
            sides.append([token])
        else:
            sides[-1].append(token)
    single = [side[0] for side in sides if len(side) == 1]
    if not single:
        return Reading(None, whole, "an expression or a range, not one number")
    token = single[-1]
    return Reading(token.number, text[token.start : token.end], token.reason)


def _token(text: str, match: re.Match[str]) -> _Token | None:
    """The token with its sign, or None when the digits belong to a name such as `x_1` or `H2`."""
    start, end = match.span()
    before = text[max(0, start - 16) : start]
    word = _WORD_BEFORE.search(before)
    if (before.endswith(("_", "_{")) and not _EMPHASIS.match(text, start - 1)) or (
        word and not word[1] and word[2] not in _CURRENCY_CODES
    ):
        return None
    minus = _minus_at(text, start)
    start = start if minus is None else minus
    value, reason = _value(match)
    scaled = SCALES.match(text, end)
    end = scaled.end() if scaled else end
    if value is not None and (NOT_ALONE.match(text, end) or _ROOT_BEFORE.search(before)):
        value, reason = None, "part of an expression, not one number"
    percent = _PERCENT.match(text, end)
    end = percent.end() if percent else end
    if value is None:
        return _Token(start, end, None, reason)
    decimal = match["plain"] is not None and "." in match["plain"]
    noisy = decimal and len(match["plain"].replace(".", "").lstrip("0")) >= _NOISY_DIGITS
    signed = -value if minus is not None else value
    signed = signed * scale_of(scaled[0]) if scaled else signed
    return _Token(start, end, Number(signed, text[start:end], percent is not None, noisy), "")


def _minus_at(text: str, start: int) -> int | None:
    """Where the sign of the number at `start` stands; None for a dash that subtracts, joins or begins an item."""
    at = start
    while at and start - at < 6 and text[at - 1] in "$€£¥₹\\ ":
        at -= 1
    if not at or text[at - 1] != "-":
        return minus_word(text, start) if at and text[at - 1] in "se" else None
    dash = at - 1
    glued = text[dash - 1 : dash] if dash else ""
    if (glued.isascii() and glued.isalnum()) or glued in {")", "]", "}", "%"}:
        return None
    left = text[max(0, dash - 8) : dash].rstrip(" \t")[-1:]
    if (left.isascii() and left.isdigit()) or left in {")", "}", "%"}:
        return None
    if text[dash + 1] == " " and (not left or left not in "=({[:≈*/"):
        return None
    return dash


def _value(match: re.Match[str]) -> tuple[Fraction | None, str]:
    if sum(character.isdigit() for character in match[0]) > MOST_DIGITS:
        return None, f"more than {MOST_DIGITS} digits"
    power = int(match["power"] or match["exponent"] or 0)
    if abs(power) > LARGEST_EXPONENT:
        return None, f"an exponent beyond {LARGEST_EXPONENT}"
    top = match["frac_top"] or match["digit_top"] or match["mixed_top"] or match["top"]
    low = match["frac_low"] or match["digit_low"] or match["mixed_low"] or match["low"]
    head = match["mantissa"] or match["spaced"] or match["plain"] or ("1" if match["power"] else None)
    whole = match["frac_whole"] or match["mixed_whole"] or "0"
    if head is not None:
        number = decimal_value(head)
        value = number * Fraction(10) ** power if number is not None and power else number
    else:
        above, below = decimal_value(top), decimal_value(low)
        if below == 0:
            return None, "a division by zero"
        value = None if above is None or below is None else Fraction(int(whole)) + above / below
    return value, "" if value is not None else "not a number in English notation"
