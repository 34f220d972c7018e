"""A regular expression that must be found in the completion."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Literal

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.time_bound import OutOfTime, can_bound, time_bound

_SECONDS = 0.5
# A pattern that is slow on so short a text is slow on nearly every text.
_PROBE_LENGTH = 18
_FLAGS = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
_LEADING_FLAGS = re.compile(r"\(\?([aimsx]+)\)")
# Ideographs, kana and Hangul, which are written without spaces between words, or with endings joined to them.
_UNSPACED = (
    r"[\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U00016fe0-\U00018cff\U0001aff0-\U0001b16f"
    r"\U00020000-\U0003ffff]"
)
# A place that is not in the middle of a word.
_EDGE = rf"(?:(?<!\w)|(?!\w)|(?<={_UNSPACED})|(?={_UNSPACED}))"


def check(pattern: str, match: str, flags: str) -> str | None:
    """The pattern compiles and the flags are known."""
    if unknown := sorted(set(flags) - set(_FLAGS)):
        return f"unknown flags {', '.join(unknown)}; use letters of {''.join(_FLAGS)}"
    try:
        _compiled(pattern, match, flags)
    except (re.error, RecursionError, OverflowError) as error:
        return f"the pattern {pattern!r:.80} is not a regular expression: {error}"
    # A thread of the app cannot be bound: there the judge process, which checks again, is the one to find out.
    for probe in _probes(pattern) if can_bound() else []:
        try:
            with time_bound(_SECONDS):
                _found(probe, pattern, match, flags)
        except OutOfTime:
            return (
                f"the pattern {pattern!r:.80} takes over {_SECONDS:g} s on {len(probe)} characters ({probe!r}); "
                "avoid a repeat inside a repeat, such as (a+)+, and alternatives that overlap, such as (a|a)*"
            )
    return None


@verifier(
    examples=[
        ("Order id: AB-1234 confirmed", {"pattern": r"[A-Z]{2}-\d{4}"}, 1.0),
        ("Order id: AB-12345 confirmed", {"pattern": r"[A-Z]{2}-\d{4}"}, 0.0),
        ("Order id: AB-12345 confirmed", {"pattern": r"[A-Z]{2}-\d{4}", "match": "search"}, 1.0),
        ("AB-1234", {"pattern": r"ab-\d{4}", "match": "full", "flags": "i"}, 1.0),
        ("a" * 40 + "!", {"pattern": "(a+)+$"}, 0.0),
    ],
    check=check,
)
def regex_match(
    completion: str, *, pattern: str, match: Literal["word", "search", "full"] = "word", flags: str = ""
) -> Verdict:
    """The completion holds a match of `pattern`: 1 or 0.

    `match`: 'word' (a match may not begin or end inside a word, but may next to an ideograph, kana or Hangul), 'search'
    (anywhere) or 'full' (the whole text). `flags`: letters of `aimsx`, as in Python, whose `re` gives the pattern its
    meaning. A text on which the pattern backtracks for over half a second scores 0; a pattern that does so on a dozen
    and a half characters is refused.
    """
    try:
        with time_bound(_SECONDS):
            found = _found(completion, pattern, match, flags)
    except OutOfTime:
        return Verdict(0.0, f"the pattern took longer than {_SECONDS:g} s on this text")
    return Verdict(1.0, "", found[0]) if found else Verdict(0.0, "no match")


def _found(text: str, pattern: str, match: str, flags: str) -> re.Match[str] | None:
    compiled = _compiled(pattern, match, flags)
    return compiled.fullmatch(text) if match == "full" else compiled.search(text)


def _probes(pattern: str) -> list[str]:
    """Texts that begin as if they matched and then do not, of characters that the pattern names or may mean."""
    named = dict.fromkeys(character for character in pattern if character.isalnum())
    return [character * _PROBE_LENGTH + "\x00" for character in [*list(named)[:12], *"a0 _.,\n"]]


@lru_cache(maxsize=64)
def _compiled(pattern: str, match: str, flags: str) -> re.Pattern[str]:
    # Leading inline flags must stay in front of what is put around the pattern.
    if inline := _LEADING_FLAGS.match(pattern):
        pattern, flags = pattern[inline.end() :], flags + inline[1]
    value = re.NOFLAG
    for letter in flags:
        value |= _FLAGS[letter]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a set that may mean more in some later Python
        return _with_edges(pattern, value, match)


def _with_edges(pattern: str, value: int, match: str) -> re.Pattern[str]:
    plain = re.compile(pattern, value)  # by itself first: 'a)(b' is wrong although '(?:a)(b)' is not
    if match != "word":
        return plain
    end = "\n)" if value & re.VERBOSE else ")"  # a comment must not swallow the bracket
    return re.compile(f"{_EDGE}(?:{pattern}{end}{_EDGE}", value)
