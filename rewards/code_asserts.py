"""Submitted Python functions against tests made of assertions."""

from __future__ import annotations

from typing import Any

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.sandbox import (
    BoxEnded,
    GoldTests,
    limit_problem,
    limits_of,
    run_tests,
    submitted_code,
    try_out,
)


def check(partial: bool, seconds: float, memory_mb: int) -> str | None:
    """Limits within which a Python process can start."""
    return limit_problem(seconds, memory_mb)


def warm(partial: bool, seconds: float, memory_mb: int) -> None:
    """Find out which sandbox this machine can have."""
    try_out()


def time_for(partial: bool, seconds: float, memory_mb: int) -> float:
    """The code's own time, and at most that of starting the sandbox and of the tests themselves."""
    return seconds + 14.0


_TWICE = "```python\ndef twice(n):\n    return 2 * n\n```"
_TESTS = "assert twice(4) == 8\nassert twice(-1) == -2"


@verifier(
    examples=[
        (_TWICE, {"answer": _TESTS}, 1.0),
        (_TWICE, {"answer": ["assert twice(4) == 8", "assert twice(5) == 11"]}, 0.0),
        (_TWICE, {"answer": ["assert twice(4) == 8", "assert twice(5) == 11"], "partial": True}, 0.5),
        ("```python\ndef twice(n):\n    return 8\n```", {"answer": _TESTS}, 0.0),
        (_TWICE, {"answer": ""}, None),
    ],
    check=check,
    warm=warm,
    seconds=time_for,
    runs_code=True,
)
def code_asserts(
    completion: str,
    answer: Any,
    entry_point: Any = None,
    test_setup_code: Any = None,
    *,
    partial: bool = False,
    seconds: float = 2.0,
    memory_mb: int = 1024,
) -> Verdict:
    """The submitted Python code passes all assertions of the gold; it runs in a sandbox.

    The gold is test code, or a list of it: assertions, `def check(candidate)` (called with `entry_point`, else with the
    last function submitted), `test_...` functions, or unittest classes. The submission is the last fenced Python block
    after the thinking (that defines what they use, where one does), or the whole text. `partial` gives the share of
    assertions that hold. `seconds` is for the submission's part of all tests of one completion. Tests that cannot be
    read, or fail by themselves, abstain.
    """
    text = _text(answer)
    if not text:
        return Verdict(None, f"the gold is not test code: {answer!r:.100}")
    tests = GoldTests(text, _text(test_setup_code), entry_point if isinstance(entry_point, str) else None)
    code = submitted_code(completion, text, tests.entry)
    try:
        report = run_tests(code, tests, limits_of(seconds, memory_mb), seconds)
    except BoxEnded as error:
        return Verdict(None, f"no sandbox can be made: {error}")
    if report.fault:
        return Verdict(None, report.fault, code)
    score = float(report.all_passed)
    if partial and report.total:
        score = report.passed / report.total
    return Verdict(score, report.reason, code)


def _text(answer: Any) -> str:
    """The test code of a gold; empty when it is none."""
    if isinstance(answer, str):
        return answer if answer.strip() else ""
    if isinstance(answer, (list, tuple)) and answer and all(isinstance(part, str) for part in answer):
        return "\n".join(part for part in answer if part.strip())
    return ""
