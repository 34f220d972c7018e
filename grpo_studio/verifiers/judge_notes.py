"""What verifiers say in words, as short plain text. Printing a value may run code of the verifier's own making."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

LONGEST_NOTE: Final = 500
_LONGEST_SHOWN: Final = 200


def cut(text: str) -> str:
    """At most `LONGEST_NOTE` characters."""
    return text if len(text) <= LONGEST_NOTE else text[: LONGEST_NOTE - 1] + "…"


def note(value: Any) -> str:
    """Any value as a note; text as it is."""
    return cut(value if type(value) is str else exact(value) if isinstance(value, str) else shown(value, str))


def described(error: BaseException) -> str:
    """An exception's type and message."""
    return cut(f"{type(error).__name__}: {shown(error, str)}".rstrip(": "))


def shown(value: Any, how: Callable[[Any], str] = repr) -> str:
    """The beginning of what `how` makes of a value, or why it cannot be shown."""
    try:
        return exact(how(value))[:_LONGEST_SHOWN]
    except BaseException as error:  # SystemExit too
        return f"(cannot be shown: {type(error).__name__})"


def exact(text: str) -> str:
    """Plain `str`: a subclass may have methods of its own."""
    return str.__str__(text)
