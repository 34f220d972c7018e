"""Lists of names as people write them, and hints for mistyped ones. Standard library only: verifier children use it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest_names(name: str, known: Iterable[str]) -> str:
    """A hint for a mistyped name: the closest of `known`, or all of them when none is close."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return f"did you mean {', '.join(close)}?"
    return f"known: {', '.join(known)}" if known else "there is none"


def names_in(text: str) -> list[str]:
    """The names of a list that is written with commas, in their order; empty parts are none."""
    return [name for part in text.split(",") if (name := part.strip())]
