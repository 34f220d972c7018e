"""Hints for mistyped names. Standard library only: verifier children import it too."""

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
