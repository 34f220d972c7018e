"""The answer of a completion against the gold answer, as mathematics."""

from __future__ import annotations

from typing import Any

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.gold import accepted_golds
from grpo_studio.verifiers.symbolic import Answer, difference, in_completion, in_gold, read_answer, warm_up

_SHOWN = 200


def check(strict_box: bool, tolerance: float) -> str | None:
    """The relative error that may be allowed."""
    return None if 0 <= tolerance < 1 else f"tolerance is {tolerance}; it must be at least 0 and below 1"


def warm(strict_box: bool, tolerance: float) -> None:
    """Import the libraries and fill the caches."""
    warm_up()


def ideal(answer: Any, *, strict_box: bool, tolerance: float) -> str | None:
    """The gold in a box."""
    golds = _golds(answer)
    return None if isinstance(golds, str) else f"\\boxed{{{golds[0].text}}}"


@verifier(
    examples=[
        ("So it is \\boxed{\\frac{3}{8}}.", {"answer": "0.375"}, 1.0),
        ("\\boxed{x \\in [2, 5]}", {"answer": "$2 \\le x \\le 5$"}, 1.0),
        ("\\boxed{64, 27}", {"answer": "27 and 64"}, 1.0),
        ("\\boxed{64}", {"answer": "27 and 64"}, 0.0),
        ("\\boxed{(a+2)^2}", {"answer": "$a^2+4a+4$"}, 1.0),
        ("\\boxed{(2,1)}", {"answer": "(1,2)"}, 0.0),
        ("\\boxed{\\text{C: more than ten}}", {"answer": "C"}, 1.0),
        ("\\boxed{7^{7^{7^{7^{7}}}}}", {"answer": "7"}, 0.0),
        ("The answer is $\\sqrt{12}$.", {"answer": "2\\sqrt{3}"}, 1.0),
        ("The answer is 4.", {"answer": "4", "strict_box": True}, 0.0),
        ("\\boxed{4}", {"answer": ""}, None),
    ],
    check=check,
    warm=warm,
    ideal=ideal,
)
def math_equal(completion: str, answer: Any, *, strict_box: bool = False, tolerance: float = 0.0) -> Verdict:
    """The stated answer equals the gold answer as mathematics: numbers, formulas, sets, intervals, equations, words.

    Only the last box after the thinking counts. Without a box the last `####` or 'the answer is', then the last
    formula, counts, unless `strict_box`. Values compare exactly (0.33 is not 1/3); `tolerance` allows a relative
    error. A gold list holds alternatives. What cannot be read whole is compared as text; a gold that is missing or
    is no answer abstains.
    """
    golds = _golds(answer)
    if isinstance(golds, str):
        return Verdict(None, golds)
    found = in_completion(completion, strict_box=strict_box)
    if found.text is None:
        return Verdict(0.0, found.reason)
    read = read_answer(found.text)
    reason = read.problem
    for gold in golds:
        told = read.problem or difference(gold, read, tolerance)
        if not told:
            return Verdict(1.0, "", read.text[:_SHOWN])
        reason = reason or f"{told} (gold: {gold.text:.60})"
    return Verdict(0.0, reason, read.text[:_SHOWN])


def _golds(answer: Any) -> tuple[Answer, ...] | str:
    """The accepted answers that can be read, or why there is none."""
    texts = accepted_golds(answer)
    if isinstance(texts, str):
        return texts
    read = [read_answer(in_gold(text)) for text in texts]
    readable = tuple(one for one in read if one.readable)
    return readable or f"the gold answer cannot be read: {read[0].problem}"
