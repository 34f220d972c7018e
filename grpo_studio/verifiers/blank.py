"""Text in which nothing can be read."""

from __future__ import annotations

import unicodedata

# White space, control and format characters such as a zero-width space.
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
# Marks and variation selectors, which only alter another character.
_MARKS = frozenset({"Mn", "Me"})
# Letters and symbols whose picture is empty: the Hangul fillers and the Braille pattern without dots.
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def is_space(text: str) -> bool:
    """Whether all of it is white space or not shown at all."""
    return all(unicodedata.category(character) in _INVISIBLE for character in text.strip())


def is_blank(text: str) -> bool:
    """Whether it holds no character that shows something by itself."""
    return all(
        character in _FILLERS or unicodedata.category(character) in _INVISIBLE | _MARKS for character in text.strip()
    )
