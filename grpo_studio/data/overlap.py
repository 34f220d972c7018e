"""Whether two questions are the same but for how they are written: letter case, white space, punctuation. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

# Only the marks of sentences are left out. Those of sums stay, or 6 - 3, 6 / 3 and 6 * 3 would be one question, and so
# would f(2) and f'(2): so a point, comma or colon between two digits stays, an exclamation mark after a digit, a dash
# that joins no words, and what may be a derivative.
_MARKS = re.compile(
    r"""(?<!\d)[.,:]|[.,:](?!\d)|(?<![\d)])!|[;?"`\u00b4\u2018-\u201e«»…¿¡。、]|'(?!['(])|(?<=[^\W\d])-(?=[^\W\d])"""
)
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2013\u2014\u2212", "-"))

_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())


def normalised(text: str) -> str:
    """The text less what may differ between two copies of one question."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_DASHES)
    return " ".join(_MARKS.sub(" ", plain).casefold().split())


def overlapping(held_out: Sequence[str], train: Iterable[str]) -> dict[int, int]:
    """Places of held-out questions that are also asked in training, each with the place of the first such row there.

    Questions of equal text are expected to be on one side already; what is left differs in writing only.
    """
    wanted: dict[str, list[int]] = {}
    for place, question in enumerate(held_out):
        wanted.setdefault(normalised(question), []).append(place)
    wanted.pop("", None)  # marks alone
    letters = {_letters(text) for text in wanted}
    found: dict[int, int] = {}
    for row, question in enumerate(train):
        # Nearly all rows are told apart by their letters, which takes a fiftieth of the time.
        if question.isascii() and _letters(question.lower()) not in letters:
            continue
        for place in wanted.pop(normalised(question), ()):
            found[place] = row
        if not wanted:
            break
    return found


def _letters(text: str) -> bytes:
    return text.encode("ascii", "ignore").translate(None, _NO_LETTERS)
