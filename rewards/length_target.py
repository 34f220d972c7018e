"""The closer to a number of tokens, the better."""

from __future__ import annotations

from grpo_studio.verifiers import Verdict, verifier


def check(tokens: int, width: int | None) -> str | None:
    """Both lengths are positive."""
    if tokens < 1:
        return f"tokens is {tokens}; aim at 1 or more"
    return None if width is None or width >= 1 else f"width is {width}; it must be 1 or more"


@verifier(
    examples=[
        ("On the mark.", {"completion_tokens": 100, "tokens": 100}, 1.0),
        ("Half as long.", {"completion_tokens": 50, "tokens": 100}, 0.5),
        ("Far too long.", {"completion_tokens": 300, "tokens": 100}, 0.0),
        ("Ten tokens off.", {"completion_tokens": 110, "tokens": 100, "width": 40}, 0.75),
        ("", {"completion_tokens": 1, "tokens": 2}, 0.0),
        ("No count.", {"tokens": 100}, None),
    ],
    check=check,
)
def length_target(
    completion: str, completion_tokens: int | None = None, *, tokens: int, width: int | None = None
) -> Verdict:
    """1 at `tokens` tokens, falling in a straight line to 0 at `width` tokens more or fewer (from 0 to 1).

    The score is max(0, 1 - |length - tokens| / width). `width` is `tokens` itself unless it is given, so that twice the
    target scores 0. An empty completion scores 0, however wide the range.
    """
    if completion_tokens is None:
        return Verdict(None, "the completion's number of tokens is not known here")
    if not completion.strip():
        return Verdict(0.0, "an empty completion")
    distance = abs(completion_tokens - tokens)
    score = max(0.0, 1 - distance / (tokens if width is None else width))
    return Verdict(score, f"{completion_tokens} tokens, {distance} from {tokens}")
