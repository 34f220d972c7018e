"""Several verifiers as one reward."""

from __future__ import annotations

import math
from typing import Any

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers import Verdict, parts, verifier

_KEYS = {"verifier": str, "weight": float, "params": dict, "low": float, "high": float}
_MOST_PARTS = 20
_EXAMPLE = [{"verifier": "math_numeric", "weight": 3}, {"verifier": "format_tags"}]


def check(parts: list[dict[str, Any]], clip: bool) -> str | None:
    """Every part can be used, has a range and a weight, and the weights sum to more than 0."""
    if not 1 <= len(parts) <= _MOST_PARTS:
        return f"parts holds {len(parts)} parts; give from 1 to {_MOST_PARTS}"
    for number, one in enumerate(parts, start=1):
        if message := _fault(one):
            return f"part {number}: {message}"
    total = sum(float(one.get("weight", 1.0)) for one in parts)
    if not total:
        return "the weights of all parts are 0; give one of them a weight above 0"
    if not math.isfinite(total):
        return "the weights of all parts sum to more than a number can be; give each one a share, such as 1"
    return None


def warm(parts: list[dict[str, Any]], clip: bool) -> None:
    """Load every part."""
    for one in parts:
        _loaded(one)


def seconds(parts: list[dict[str, Any]], clip: bool) -> float:
    """The parts are judged one after the other."""
    return sum(_seconds(one) for one in parts)


def ideal(parts: list[dict[str, Any]], clip: bool = True, **columns: Any) -> str | None:
    """What the part of the greatest weight that knows an ideal completion calls ideal."""
    for one in sorted(parts, key=lambda one: -float(one.get("weight", 1.0))):
        if found := _ideal(one, columns):
            return found
    return None


@verifier(
    examples=[
        (
            "<think>6 + 6</think><answer>12</answer>",
            {"answer": "12", "parts": [{"verifier": "math_numeric", "weight": 3}, {"verifier": "format_tags"}]},
            1.0,
        ),
        (
            "12",
            {"answer": "12", "parts": [{"verifier": "math_numeric", "weight": 3}, {"verifier": "format_tags"}]},
            0.75,
        ),
        (
            "Near the limit.",
            {
                "completion_tokens": 90,
                "parts": [
                    {"verifier": "soft_overlong", "params": {"max_length": 100, "cache": 20}, "low": -1, "high": 0}
                ],
            },
            0.5,
        ),
        ("12", {"answer": "", "parts": _EXAMPLE}, None),
    ],
    check=check,
    warm=warm,
    seconds=seconds,
    ideal=ideal,
)
def ensemble(completion: str, *, parts: list[dict[str, Any]], clip: bool = True, **columns: Any) -> Verdict:
    """The weighted mean of several verifiers, each brought to the scale from 0 to 1 first.

    Each part is {verifier, weight: 1, params: {}, low: 0, high: 1}: `low` and `high` are the scores of that verifier
    that count as 0 and as 1 here (-1 and 0 for soft_overlong), and the weights are divided by their sum. A value beyond
    its range is cut to it, or, with `clip` off, counts as far beyond as it is; the score is from 0 to 1 unless so.
    It abstains when a part abstains or breaks, and says which.
    """
    total = sum(float(one.get("weight", 1.0)) for one in parts)
    score, notes = 0.0, []
    for one in parts:
        name, low, high = one["verifier"], float(one.get("low", 0.0)), float(one.get("high", 1.0))
        try:
            inner = _loaded(one)(completion, columns)
        except VerifierError as error:
            return Verdict(None, f"part {name}: {error}")
        if inner.score is None:
            return Verdict(None, f"part {name} abstained: {inner.reason}")
        scaled = (inner.score - low) / (high - low)
        scaled = min(1.0, max(0.0, scaled)) if clip else scaled
        share = float(one.get("weight", 1.0)) / total
        score += share * scaled
        notes.append(f"{name} {inner.score:.4g} ({share:.0%})" + (f": {inner.reason}" if inner.reason else ""))
    return Verdict(score, "; ".join(notes))


def _fault(one: Any) -> str | None:
    if not isinstance(one, dict) or not isinstance(one.get("verifier"), str):
        return f"it is {one!r:.80}; write {{verifier: NAME, weight: 1, params: {{}}, low: 0, high: 1}}"
    for key, value in one.items():
        if key not in _KEYS:
            return f"unknown key {key!r:.40}; a part has {', '.join(_KEYS)}"
        wanted = (int, float) if _KEYS[key] is float else _KEYS[key]
        if not isinstance(value, wanted) or isinstance(value, bool):
            return f"{key} is {value!r:.60}; it must be a {'number' if _KEYS[key] is float else _KEYS[key].__name__}"
        if isinstance(value, (int, float)) and not _finite(value):
            return f"{key} is {value!r:.60}; it must be finite"
    name, weight, low, high = one["verifier"], one.get("weight", 1.0), one.get("low", 0.0), one.get("high", 1.0)
    if name == "ensemble":
        return "an ensemble cannot be a part of an ensemble; put its parts here, with their weights"
    if weight < 0:
        return f"the weight of {name} is {weight}; it must be 0 or more"
    if low >= high:
        return f"{name} has low {low} and high {high}; low is the score that counts as 0 and must be below high"
    if not math.isfinite(high - low):
        return f"{name} has low {low} and high {high}; they are too far apart"
    return next(iter(parts.part_problems(name, one.get("params", {}))), None)


def _finite(value: float) -> bool:
    """Whether it is a finite float; an int can be too large for one."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _loaded(one: dict[str, Any]) -> parts.Part:
    return parts.part(one["verifier"], one.get("params", {}))


def _seconds(one: dict[str, Any]) -> float:
    return parts.part_seconds(one["verifier"], one.get("params", {}))


def _ideal(one: dict[str, Any], columns: dict[str, Any]) -> str | None:
    return parts.part_ideal(one["verifier"], one.get("params", {}), columns)
