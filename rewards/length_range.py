"""A length between bounds."""

from __future__ import annotations

from grpo_studio.verifiers import Verdict, verifier


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
        ("", {"min_chars": 0, "max_chars": 20}, 1.0),
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

    Characters are counted without the white space at both ends. An empty completion scores 0, or 'shorter is better'
    would pay for silence; a minimum that is given as 0 allows it. Bounds in tokens abstain without a token count.
    """
    chars = len(completion.strip())
    if not chars and min_chars != 0 and min_tokens != 0:
        return Verdict(0.0, "an empty completion; a minimum of 0 would allow it")
    if completion_tokens is None and (min_tokens is not None or max_tokens is not None):
        return Verdict(None, "the completion's number of tokens is not known here")
    reason = _outside(chars, min_chars, max_chars, "characters")
    if not reason and completion_tokens is not None:
        reason = _outside(completion_tokens, min_tokens, max_tokens, "tokens")
    return Verdict(0.0 if reason else 1.0, reason)


def _outside(length: int, low: int | None, high: int | None, unit: str) -> str:
    if low is not None and length < low:
        return f"{length} {unit}, below the minimum of {low}"
    if high is not None and length > high:
        return f"{length} {unit}, above the maximum of {high}"
    return ""
