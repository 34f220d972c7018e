"""Submitted Python programs against what they must print for given inputs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.sandbox import BoxEnded, limit_problem, limits_of, run_program, submitted_code, try_out


def check(tolerance: float | None, partial: bool, seconds: float, memory_mb: int) -> str | None:
    """Limits within which a Python process can start, and a tolerance that is one."""
    if tolerance is not None and not 0 < tolerance < 1:
        return f"tolerance is {tolerance}; it must be above 0 and below 1, or none"
    return limit_problem(seconds, memory_mb)


def warm(tolerance: float | None, partial: bool, seconds: float, memory_mb: int) -> None:
    """Find out which sandbox this machine can have."""
    try_out()


def time_for(tolerance: float | None, partial: bool, seconds: float, memory_mb: int) -> float:
    """The program's own time, and that of starting the sandbox."""
    return seconds + 4.0


_TRIPLE = "```python\nprint(3 * int(input()))\n```"


@verifier(
    examples=[
        (_TRIPLE, {"answer": [{"input": "5\n", "output": "15\n"}]}, 1.0),
        (_TRIPLE, {"answer": {"inputs": ["5", "6"], "outputs": ["15", "19"]}}, 0.0),
        (_TRIPLE, {"answer": {"inputs": ["5", "6"], "outputs": ["15", "19"]}, "partial": True}, 0.5),
        ("```python\nprint(1)\n```", {"answer": [{"input": "", "output": "1\n2\n"}]}, 0.0),
        (_TRIPLE, {"answer": []}, None),
        (_TRIPLE, {"answer": [{"input": "5\n", "output": ""}]}, None),
    ],
    check=check,
    warm=warm,
    seconds=time_for,
    runs_code=True,
)
def code_stdin(
    completion: str,
    answer: Any,
    *,
    tolerance: float | None = None,
    partial: bool = False,
    seconds: float = 2.0,
    memory_mb: int = 1024,
) -> Verdict:
    """The submitted Python program prints what the gold says for each input; it runs in a sandbox.

    The gold is a list of `{"input", "output"}` or one `{"inputs", "outputs"}`, also as JSON text. Outputs must have the
    same lines, but for space at the end of a line and of the whole. `tolerance`: numbers in them may differ by that
    much, absolutely or relatively. A program that ends with an error fails that test, and each test begins in an empty
    folder. `partial` gives the share of
    tests that pass; `seconds` is for all tests of one completion. An empty list or an empty output abstains.
    """
    tests = _tests(answer)
    if isinstance(tests, str):
        return Verdict(None, tests)
    code = submitted_code(completion)
    if not code.strip():
        return Verdict(0.0, "no code")
    try:
        printed = run_program(code, [given for given, _ in tests], limits_of(seconds, memory_mb), seconds)
    except BoxEnded as error:
        return Verdict(None, f"no sandbox can be made: {error}")
    reasons = [
        one.trouble or _difference(one.output, wanted, tolerance)
        for one, (_, wanted) in zip(printed, tests, strict=True)
    ]
    passed = reasons.count("")
    reason = next((f"test {place}: {reason}" for place, reason in enumerate(reasons, 1) if reason), "")
    return Verdict(passed / len(tests) if partial else float(passed == len(tests)), reason, code)


def _tests(answer: Any) -> list[tuple[str, str]] | str:
    """The pairs of input and expected output, or why there are none."""
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except (ValueError, RecursionError):
            return f"the gold is not a list of inputs and outputs: {answer!r:.100}"
    if isinstance(answer, Mapping):
        if answer.get("fn_name"):
            return "the gold's tests call a function; code_stdin tests programs that read standard input"
        if "inputs" in answer or "outputs" in answer:
            given, wanted = answer.get("inputs"), answer.get("outputs")
            if not (isinstance(given, list) and isinstance(wanted, list) and len(given) == len(wanted)):
                return "the gold's inputs and outputs are not two lists of one length"
            answer = [{"input": one, "output": other} for one, other in zip(given, wanted, strict=True)]
        else:
            answer = [answer]
    if not isinstance(answer, list) or not answer:
        return f"the gold has no tests: {answer!r:.100}"
    pairs = [_pair(test) for test in answer]
    bad = next((place for place, pair in enumerate(pairs, 1) if pair is None), None)
    if bad is not None:
        return f"test {bad} of the gold lacks an input or an output that is not empty"
    return [pair for pair in pairs if pair is not None]


def _pair(test: Any) -> tuple[str, str] | None:
    if not isinstance(test, Mapping) or "output" not in test:
        return None
    given, wanted = _text(test.get("input", "")), _text(test["output"])
    return None if given is None or wanted is None or not wanted.strip() else (given, wanted)


def _text(value: Any) -> str | None:
    """Text as it is; a list is one of lines; a number is written out."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and all(isinstance(line, (str, int, float)) for line in value):
        return "\n".join(str(line) for line in value)
    return None


def _difference(found: str, wanted: str, tolerance: float | None) -> str:
    """What is wrong with an output; empty when nothing is."""
    lines, expected = _lines(found), _lines(wanted)
    if len(lines) != len(expected):
        return f"{len(lines)} lines instead of {len(expected)}"
    for place, (line, other) in enumerate(zip(lines, expected, strict=True), 1):
        if line != other and (tolerance is None or not _near(line.split(), other.split(), tolerance)):
            return f"line {place} is {line!r:.60} instead of {other!r:.60}"
    return ""


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.replace("\r\n", "\n").rstrip().split("\n")]


def _near(words: Sequence[str], others: Sequence[str], tolerance: float) -> bool:
    if len(words) != len(others):
        return False
    for word, other in zip(words, others, strict=True):
        try:
            near = math.isclose(float(word), float(other), rel_tol=tolerance, abs_tol=tolerance)
        except ValueError:
            near = False
        if word != other and not near:
            return False
    return True
