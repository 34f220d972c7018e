"""math-verify's verdict where sets or matrices are computed with, which nothing else here does, under guards.

It is asked only about short texts of commands that it is known to read, with nothing in them that can grow (towers
of powers, factorials, sums, integrals, long numbers), and it is believed only if every letter and every number of
the text is in what it read: it drops what it cannot read, and then `5\\foo` is 5. Its time limits are signals, which
need the main thread, so they are off; the guards, and last the judge's limit, bound the time.
"""

from __future__ import annotations

import importlib
import logging
import re
from functools import lru_cache
from typing import Any

from grpo_studio.verifiers.symbolic.answer import Answer
from grpo_studio.verifiers.symbolic.numeric import context
from grpo_studio.verifiers.symbolic.words import word_set

_LONGEST = 120
_DEEPEST = 4  # its parser takes seconds for a few dozen nested brackets
_KNOWN = word_set(
    "frac dfrac tfrac sqrt cdot times left right cap cup setminus in subset subseteq det begin end log ln exp sin cos"
    " tan pi le leq ge geq lt gt neq pm infty mathbb operatorname mathrm text alpha beta gamma theta lambda mu quad"
    " , ; ! { } \\"
)
_GROWING = re.compile(r"!|\^\s*\{?[^{}]*\^|\d{7}|\^\s*\{?\s*-?\d{3}|\*\*")
_ALGEBRA = re.compile(r"\\(?:cap|cup|setminus|begin)(?![A-Za-z])")
_TYPED_WORD = re.compile(r"(?<![A-Za-z\\{])[A-Za-z]{2}")
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)", re.DOTALL)
_MARKUP = re.compile(r"\\(?:begin|end|operatorname|mathrm|mathbb|text)\s*\{[^{}]*\}|\\(?:[A-Za-z]+|.)", re.DOTALL)


def agrees(gold: Answer, answer: Answer) -> bool:
    """Whether math-verify read both whole and found them equal. Never raises."""
    if not _ALGEBRA.search(gold.text + answer.text):
        return False
    if not (_may_be_asked(gold.text) and _may_be_asked(answer.text)):
        return False
    one, other = _parsed(gold.text), _parsed(answer.text)
    if one is None or other is None:
        return False
    try:
        return bool(_library().verify(one, other, timeout_seconds=None))
    except Exception:  # sympy raises anything; then there is no second opinion
        return False


def warm_up() -> None:
    """Import what the first item would wait for."""
    _ = context().pi + 0
    _parsed(r"[0,1] \cap [0,2]")


def _depth(text: str) -> int:
    depth = deepest = 0
    for mark in re.findall(r"[(\[{]|[)\]}]", text):
        depth += 1 if mark in "([{" else -1
        deepest = max(deepest, depth)
    return deepest


def _library() -> Any:
    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns that its time limits are off
    return importlib.import_module("math_verify")


def _may_be_asked(text: str) -> bool:
    return (
        len(text) <= _LONGEST
        and text.isascii()
        and not _TYPED_WORD.search(text)
        and not _GROWING.search(text)
        and _depth(text) <= _DEEPEST
        and all(command[1:].strip() in _KNOWN for command in _COMMAND.findall(text))
    )


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Any:
    """What math-verify reads, or None when that is not all of the text."""
    library = _library()
    config = [library.LatexExtractionConfig()]
    try:
        found = library.parse(f"${text}$", config, fallback_mode="no_fallback", parsing_timeout=None)
        if not found or not _is_whole(text, found[0]):
            return None
        # Unions and intersections stay as they are written until they are asked to be worked out.
        return found[0].doit() if hasattr(found[0], "doit") else found[0]
    except Exception:
        return None


def _is_whole(text: str, read: Any) -> bool:
    """Whether each letter and number of the text is in the tree. A tree is walked, not printed: that can hang."""
    sympy = importlib.import_module("sympy")
    names, numbers = "", set()
    for part in sympy.preorder_traversal(read):
        if isinstance(part, sympy.Rational):
            numbers |= {abs(int(part.p))} | ({int(part.q)} - {1})
        names += str(getattr(part, "name", ""))
    rest = _MARKUP.sub(" ", text)
    letters = {letter.lower() for letter in re.findall("[A-Za-z]", rest)} - {"e", "i"}
    return letters <= set(names.lower()) and {int(digits) for digits in re.findall(r"\d+", rest)} <= numbers
