"""A regular expression that must be found in the completion."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from grpo_studio.verifiers import Verdict, verifier

_FLAGS = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
_LEADING_FLAGS = re.compile(r"\(\?([aimsx]+)\)")
# A place that is not in the middle of a word.
_EDGE = r"(?:(?<!\w)|(?!\w))"


def check(pattern: str, match: str, flags: str) -> str | None:
    """The pattern compiles and the flags are known."""
    if unknown := sorted(set(flags) - set(_FLAGS)):
        return f"unknown flags {', '.join(unknown)}; use letters of {''.join(_FLAGS)}"
    try:
        _compiled(pattern, match, flags)
    except (re.error, RecursionError, OverflowError) as error:
        return f"the pattern {pattern!r:.80} is not a regular expression: {error}"
    return None


@verifier(
    examples=[
        ("Order id: AB-1234 confirmed", {"pattern": r"[A-Z]{2}-\d{4}"}, 1.0),
        ("Order id: AB-12345 confirmed", {"pattern": r"[A-Z]{2}-\d{4}"}, 0.0),
        ("Order id: AB-12345 confirmed", {"pattern": r"[A-Z]{2}-\d{4}", "match": "search"}, 1.0),
        ("AB-1234", {"pattern": r"ab-\d{4}", "match": "full", "flags": "i"}, 1.0),
    ],
    check=check,
)
def regex_match(
    completion: str, *, pattern: str, match: Literal["word", "search", "full"] = "word", flags: str = ""
) -> Verdict:
    """The completion holds a match of `pattern`.

    `match`: 'word' (a match may not begin or end inside a word), 'search' (anywhere) or 'full' (the whole text).
    `flags`: letters of `aimsx`, as in Python. A pattern that backtracks for ever is ended by the judge's time limit.
    """
    compiled = _compiled(pattern, match, flags)
    found = compiled.fullmatch(completion) if match == "full" else compiled.search(completion)
    return Verdict(1.0, "", found[0]) if found else Verdict(0.0, "no match")


@lru_cache(maxsize=64)
def _compiled(pattern: str, match: str, flags: str) -> re.Pattern[str]:
    # Leading inline flags must stay in front of what is put around the pattern.
    if inline := _LEADING_FLAGS.match(pattern):
        pattern, flags = pattern[inline.end() :], flags + inline[1]
    value = re.NOFLAG
    for letter in flags:
        value |= _FLAGS[letter]
    plain = re.compile(pattern, value)  # by itself first: 'a)(b' is wrong although '(?:a)(b)' is not
    if match != "word":
        return plain
    end = "\n)" if value & re.VERBOSE else ")"  # a comment must not swallow the bracket
    return re.compile(f"{_EDGE}(?:{pattern}{end}{_EDGE}", value)
