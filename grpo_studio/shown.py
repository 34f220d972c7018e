"""Text from outside as it stands in a message: one short line that no terminal and no page can trip over. Pure."""

from __future__ import annotations

import re
import reprlib
from typing import Any

_PLAIN_NAME = re.compile(r"[\w./:-]+(?: [\w./:-]+)*")


def shown(value: Any, length: int = 60) -> str:
    """A value cut to `length` characters; white space is one space, what does not show is written as an escape.

    It never holds `; `, since what stands after that in an error is its fix.
    """
    text = value if isinstance(value, str) else _repr(value, length)
    text = " ".join(text[: 4 * length + 1].split())
    text = visible(text).replace("; ", ";")
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def shown_name(name: str, length: int = 40) -> str:
    """A column's name; quoted when it is more than letters, digits and the like."""
    text = shown(name, length)
    return text if text == name and _PLAIN_NAME.fullmatch(name) else f"'{text}'"


def visible(text: str) -> str:
    """The whole text with what does not show written as an escape."""
    return text if text.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _repr(value: Any, length: int) -> str:
    short = reprlib.Repr()
    short.maxlist = short.maxtuple = short.maxdict = short.maxset = 8
    short.maxstring = short.maxother = 2 * length
    try:
        return short.repr(value)
    except ValueError:
        return "an integer of over 4,300 digits"
