"""Numbers as they are written: decimals, exponents, repeating decimals, mixed numbers. Exact values."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from grpo_studio.verifiers.symbolic.tokens import Token
from grpo_studio.verifiers.symbolic.tree import UnreadableError

_NOISY_DIGITS = 15  # of a decimal; a double prints 15 to 17 significant digits
_LARGEST_EXPONENT = 4000
_LONGEST_PART = 20


def number_of(text: str) -> Fraction:
    """The exact value of a number as it is written, with a repeating part or an exponent."""
    if "\\" in text:
        head, _, repeated = text.partition("\\")
        digits = "".join(filter(str.isdigit, repeated))
        whole, _, start = head.strip().partition(".")
        shift = 10 ** len(start)
        return Fraction(int(whole + start or "0"), shift) + Fraction(int(digits), shift * (10 ** len(digits) - 1))
    mantissa, _, exponent = text.lower().partition("e")
    if exponent and abs(int(exponent)) > _LARGEST_EXPONENT:
        raise UnreadableError(f"an exponent beyond {_LARGEST_EXPONENT}")
    return Fraction(mantissa) * Fraction(10) ** int(exponent or 0)


def is_noisy(text: str) -> bool:
    """Whether a decimal has as many digits as floating point prints, so that its end may be noise."""
    return "." in text and len(text.strip("0.").replace(".", "")) >= _NOISY_DIGITS


def mixed_part(tokens: Sequence[Token], at: int) -> tuple[Fraction, int] | None:
    """The fraction of a mixed number (`3 1/2`, `3\\frac{1}{2}`, `3\\frac12`) and how many tokens it takes."""
    ahead = [token.text for token in tokens[at : at + 7]]
    if ahead[1:2] == ["/"] and tokens[at].kind == "num" and tokens[at].spaced:
        top, low, length = ahead[0], "".join(ahead[2:3]), 3
    elif ahead[:2] == ["frac", "{"] and ahead[3:5] == ["}", "{"] and ahead[6:] == ["}"]:
        top, low, length = ahead[2], ahead[5], 7
    elif ahead[:1] == ["frac"] and len("".join(ahead[1:2])) == 2:
        top, low, length = ahead[1][0], ahead[1][1], 2
    else:
        return None
    if not (top.isdigit() and low.isdigit()) or int(low) == 0 or max(len(top), len(low)) > _LONGEST_PART:
        return None
    return Fraction(int(top), int(low)), length
