"""What a judge is asked for, what a verifier may return, and what the judge says."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from grpo_studio.verifiers.contract import Verdict
from grpo_studio.verifiers.judge_notes import cut, note, shown

Outcome = Literal["ok", "abstained", "timeout", "error", "wrong_type", "non_finite"]
OUTCOMES: Final[tuple[str, ...]] = get_args(Outcome)
RETURNED: Final = frozenset({"ok", "abstained", "wrong_type", "non_finite"})
"""Outcomes of a verifier that returned; a child names them so too."""
# The least number that float32, in which training holds rewards, rounds to infinity (IEEE 754, round to nearest).
_BEYOND_FLOAT32: Final = (2 - 2**-24) * 2.0**127


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


def read_returned(name: str, returned: Any) -> tuple[Outcome, Verdict]:
    """What the verifier of that name returned: a finite number ("ok"), None ("abstained"), or what breaks the contract.

    Of the last, the verdict's score is None and its reason says what to return instead.
    """
    if isinstance(returned, Verdict):
        score, reason = returned.score, note(returned.reason)
        extracted = None if returned.extracted is None else note(returned.extracted)
    else:
        score, reason, extracted = returned, "", None
    if type(score) is float and abs(score) < _BEYOND_FLOAT32:
        return "ok", Verdict(score, reason, extracted)
    if score is None:
        return "abstained", Verdict(None, reason, extracted)
    if isinstance(score, bool):
        return "wrong_type", Verdict(None, f"{name} returned {score} (bool); return {float(score)} instead", extracted)
    if not isinstance(score, numbers.Real):
        wrong = f"{name} returned {shown(score)} ({type(score).__name__}); return a number, None or a Verdict"
        return "wrong_type", Verdict(None, cut(wrong), extracted)
    try:
        value = float(score)
    except OverflowError:
        value = math.inf
    if abs(value) < _BEYOND_FLOAT32:
        return "ok", Verdict(value, reason, extracted)
    why = "too large for a reward, which has 32 bits" if math.isfinite(value) else "not a finite number"
    return "non_finite", Verdict(None, f"{name} returned {value}, which is {why}", extracted)


def abstention(reason: str, seconds: float = 0.0) -> Score:
    """The score of an item that cannot be judged, for no fault of its completion."""
    return Score(None, clean(reason), None, seconds, "abstained")


def score_of(answer: Sequence[Any]) -> Score:
    """A child's `[kind, value, reason, extracted, seconds]` as a score.

    It is data from another process, so nothing about it is taken for granted. Raises TypeError or ValueError.
    """
    kind, value, reason, extracted, seconds = answer
    if kind not in RETURNED or (isinstance(value, float) and math.isfinite(value)) != (kind == "ok"):
        raise ValueError(f"{kind!r:.40} with the value {value!r:.40} is not an answer")
    return Score(value, clean(reason), None if extracted is None else clean(extracted), float(seconds), kind)


def clean(text: str) -> str:
    """Short, and free of lone surrogates, which neither SQLite nor a browser takes."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r:.40} is not text")
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return cut(text)
