"""What a judge is asked for and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

Outcome = Literal["ok", "abstained", "timeout", "error", "wrong_type", "non_finite"]
OUTCOMES: Final[tuple[str, ...]] = get_args(Outcome)
RETURNED: Final = frozenset({"ok", "abstained", "wrong_type", "non_finite"})
"""Outcomes of a verifier that returned; a child names them so too."""
_LONGEST_NOTE = 500


@dataclass(frozen=True)
class JudgeRequest:
    """A verifier by name, with the params it is called with."""

    verifier: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Score:
    """One verifier's word on one completion.

    `value` is None for the outcomes 'abstained', 'wrong_type' (what was returned is no number) and 'non_finite';
    it is 0 for 'timeout' and 'error': the completion is what could not be judged.
    """

    value: float | None
    reason: str
    extracted: str | None
    seconds: float
    outcome: Outcome


def abstention(reason: str, seconds: float = 0.0) -> Score:
    """The score of an item that cannot be judged, for no fault of its completion."""
    return Score(None, clean(reason), None, seconds, "abstained")


def score_of(answer: Sequence[Any]) -> Score:
    """A child's `[kind, value, reason, extracted, seconds]` as a score.

    It is data from another process, so nothing about it is taken for granted. Raises TypeError or ValueError.
    """
    kind, value, reason, extracted, seconds = answer
    if kind not in RETURNED or (isinstance(value, float) != (kind == "ok")):
        raise ValueError(f"{kind!r:.40} with the value {value!r:.40} is not an answer")
    return Score(value, clean(reason), None if extracted is None else clean(extracted), float(seconds), kind)


def clean(text: str) -> str:
    """Short, and free of lone surrogates, which neither SQLite nor a browser takes."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r:.40} is not text")
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= _LONGEST_NOTE else text[: _LONGEST_NOTE - 1] + "…"
