"""A length between bounds."""

from __future__ import annotations

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.blank import is_blank


def check(min_chars: int | None, max_chars: int | None, min_tokens: int | None, max_tokens: int | None) -> str | None:
    """There is a bound, none is negative, and no minimum is above its maximum."""
    if all(bound is None for bound in (min_chars, max_chars, min_tokens, max_tokens)):
        return "give at least one of min_chars, max_chars, min_tokens and max_tokens"
    for unit, low, high in (("chars", min_chars, max_chars), ("tokens", min_tokens, max_tokens)):
        for side, bound in (("min", low), ("max", high)):
            if bound is not None and bound < 0:
                return f"{side}_{unit} is {bound}; a length is 0 or more"
        if low is not None and high is not None and low > high:
            return f"min_{unit} is {low}, above max_{unit} {high}; swap them"
    return None


@verifier(
    examples=[
        ("Short and sweet.", {"max_chars": 20}, 1.0),
        ("This one is longer than that.", {"max_chars": 20}, 0.0),
        ("", {"max_chars": 20}, 0.0),
        ("", {"min_chars": 0, "max_chars": 20}, 0.0),
        ("Of 40 tokens.", {"completion_tokens": 40, "min_tokens": 10, "max_tokens": 64}, 1.0),
        ("Of 65 tokens.", {"completion_tokens": 65, "min_tokens": 10, "max_tokens": 64}, 0.0),
    ],
    check=check,
)
def length_range(
    completion: str,
    completion_tokens: int | None = None,
    *,
    min_chars: int | None = None,
    max_chars: int | None = None,
    min_tokens: int | None = None,
    max_tokens: int | None = None,
) -> Verdict:
    """The length is within all bounds that are given, which belong to the range: 1 or 0.

    Characters are counted without the white space at both ends. An empty completion, or one in which nothing shows,
    scores 0 whatever the bounds, or 'shorter is better' would pay for silence. Bounds in tokens abstain without a token
    count.
    """
    if is_blank(completion):
        return Verdict(0.0, "an empty completion")
    if completion_tokens is None and (min_tokens is not None or max_tokens is not None):
        return Verdict(None, "the completion's number of tokens is not known here")
    reason = _outside(len(completion.strip()), min_chars, max_chars, "characters")
    if not reason and completion_tokens is not None:
        reason = _outside(completion_tokens, min_tokens, max_tokens, "tokens")
    return Verdict(0.0 if reason else 1.0, reason)


def _outside(length: int, low: int | None, high: int | None, unit: str) -> str:
    if low is not None and length < low:
        return f"{length} {unit}, below the minimum of {low}"
    if high is not None and length > high:
        return f"{length} {unit}, above the maximum of {high}"
    return ""
