"""A shaping part: a wrong answer that is long costs a little."""

from __future__ import annotations

from typing import Any

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers import Verdict, parts, verifier


def check(verifier: str, params: dict[str, Any] | None, penalty: float, past: int, right: float) -> str | None:
    """The inner verifier can be used and the penalty is one."""
    if verifier == "wrong_and_long":
        return "verifier is wrong_and_long itself; name the one that judges the answer, such as math_numeric"
    if problems := parts.part_problems(verifier, params or {}):
        return problems[0]
    if penalty > 0:
        return f"penalty is {penalty}; it must be 0 or negative, such as -0.1"
    return None if past >= 0 else f"past is {past}; it is a number of characters, 0 or more"


def warm(verifier: str, params: dict[str, Any] | None, penalty: float, past: int, right: float) -> None:
    """Load the inner verifier."""
    parts.part(verifier, params or {})


def seconds(verifier: str, params: dict[str, Any] | None, penalty: float, past: int, right: float) -> float:
    """As long as the inner verifier takes."""
    return parts.part_seconds(verifier, params or {})


def ideal(*, verifier: str = "math_numeric", params: dict[str, Any] | None = None, **columns: Any) -> str | None:
    """What the inner verifier calls ideal: right answers cost nothing."""
    own = ("penalty", "past", "right")
    return parts.part_ideal(verifier, params or {}, {key: columns[key] for key in columns if key not in own})


@verifier(
    examples=[
        ("The answer is 12.", {"answer": "12"}, 0.0),
        ("The answer is 13.", {"answer": "12"}, 0.0),
        ("So much to say. " * 20 + "The answer is 13.", {"answer": "12"}, -0.1),
        ("So much to say. " * 20 + "The answer is 12.", {"answer": "12"}, 0.0),
        ("The answer is 13.", {"answer": "12", "past": 5, "penalty": -0.5}, -0.5),
        ("The answer is 13.", {"answer": ""}, None),
    ],
    check=check,
    warm=warm,
    seconds=seconds,
    ideal=ideal,
)
def wrong_and_long(
    completion: str,
    answer: Any,
    *,
    verifier: str = "math_numeric",
    params: dict[str, Any] | None = None,
    penalty: float = -0.1,
    past: int = 200,
    right: float = 1.0,
    **columns: Any,
) -> Verdict:
    """`penalty` for a wrong answer of over `past` characters, else 0; to be added to a reward for the answer.

    `verifier`, with `params`, says what is wrong: a score below `right`. Characters are counted without the white space
    at both ends. It abstains when that verifier abstains. The score is `penalty` or 0.
    """
    try:
        inner = parts.part(verifier, params or {})(completion, {"answer": answer, **columns})
    except VerifierError as error:
        return Verdict(None, str(error))
    if inner.score is None:
        return Verdict(None, f"{verifier}: {inner.reason}", inner.extracted)
    length = len(completion.strip())
    if inner.score >= right or length <= past:
        return Verdict(0.0, "", inner.extracted)
    return Verdict(penalty, f"wrong, and {length} characters long: {inner.reason}", inner.extracted)
