"""A soft punishment for completions that come near the length limit."""

from __future__ import annotations

from grpo_studio.verifiers import Verdict, verifier


def check(max_length: int, cache: int) -> str | None:
    """The range in which the punishment grows lies below the limit."""
    if max_length < 1:
        return f"max_length is {max_length}; give the run's completion limit in tokens"
    if not 1 <= cache <= max_length:
        return f"cache is {cache}; it must be from 1 to max_length ({max_length}), such as {max(1, max_length // 5)}"
    return None


@verifier(
    examples=[
        ("Short enough.", {"completion_tokens": 80, "max_length": 100, "cache": 20}, 0.0),
        ("In the middle.", {"completion_tokens": 90, "max_length": 100, "cache": 20}, -0.5),
        ("At the limit.", {"completion_tokens": 100, "max_length": 100, "cache": 20}, -1.0),
        ("Past it.", {"completion_tokens": 101, "max_length": 100, "cache": 20}, -1.0),
        ("No count.", {"max_length": 100, "cache": 20}, None),
    ],
    check=check,
)
def soft_overlong(completion: str, completion_tokens: int | None = None, *, max_length: int, cache: int) -> Verdict:
    """0 for a length up to `max_length - cache` tokens, then down in a straight line to -1 at `max_length`.

    It is the soft overlong punishment of DAPO (arXiv 2503.14476, equation 13; from -1 to 0): add it to a reward for the
    answer. `max_length` is the run's completion limit; past it the score stays -1.
    """
    if completion_tokens is None:
        return Verdict(None, "the completion's number of tokens is not known here")
    free = max_length - cache
    score = min(0.0, max(-1.0, (free - completion_tokens) / cache))
    return Verdict(score, f"{completion_tokens} tokens; {free} are free" if score else "")
