"""Pairs of answers for `math_equal`, and the verifier itself."""

from __future__ import annotations

from pathlib import Path

from grpo_studio.verifiers import discover

SPEC = discover([Path(__file__).resolve().parents[1] / "rewards"]).get("math_equal")
math_equal = SPEC.function


def table(text: str) -> list[tuple[str, str]]:
    """The pairs of a text of lines 'completion ~ gold'."""
    return [(left.strip(), right.strip()) for left, right in (line.split(" ~ ") for line in text.strip().splitlines())]


def boxed(text: str) -> str:
    return f"So it is \\boxed{{{text}}}."


def score_of_ideal(gold: str) -> float | None:
    """What the completion that deserves the full score for this gold gets."""
    assert SPEC.ideal is not None
    ideal = SPEC.ideal(gold, **SPEC.params)
    assert ideal is not None
    score: float | None = math_equal(ideal, gold).score
    return score
