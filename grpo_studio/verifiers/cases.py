"""Runs a file of cases, one JSON object a line, through real judges: verifiers against expected values.

A case is `id, reward, completion, answer, params, expected`; `expected: null` means that it must abstain. All other
keys are notes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpo_studio.errors import DataError, VerifierError
from grpo_studio.verifiers.judge import Judge, JudgeRequest, Score

_TOLERANCE = 1e-6


@dataclass(frozen=True)
class CaseResult:
    """The outcome of one line. `score` is None when nothing was judged; then `reason` says why."""

    id: str
    line: int
    reward: str
    passed: bool
    expected: float | None
    score: Score | None
    reason: str


@dataclass(frozen=True)
class _Case:
    id: str
    line: int
    reward: str
    completion: Any
    answer: Any
    expected: float | None
    params: Mapping[str, Any] = field(default_factory=dict)


def run_cases(
    path: Path, registry_dirs: Sequence[Path], only: set[str] | None = None, time_limit: float = 5.0
) -> list[CaseResult]:
    """The results in the file's order; `only` keeps the cases of these rewards (and lines that cannot be read).

    Raises DataError when the file cannot be read.
    """
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise DataError(f"cannot read the cases in {path}: {error.strerror or error}") from error
    results: list[CaseResult] = []
    groups: dict[tuple[str, str], list[_Case]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            case = _read(line, number)
        except (ValueError, RecursionError) as error:
            reason = f"line {number} is not a case: {error}"
            results.append(CaseResult(f"line {number}", number, "", False, None, None, reason))
            continue
        if only is None or case.reward in only:
            # One judge for each distinct setting of a verifier.
            groups.setdefault((case.reward, json.dumps(case.params, sort_keys=True)), []).append(case)
    for cases in groups.values():
        results.extend(_run_group(cases, registry_dirs, time_limit))
    return sorted(results, key=lambda result: result.line)


def summary(results: Sequence[CaseResult]) -> str:
    """The last line of `score`: 'N passed, M failed'."""
    passed = sum(result.passed for result in results)
    return f"{passed} passed, {len(results) - passed} failed"


def _run_group(cases: Sequence[_Case], directories: Sequence[Path], time_limit: float) -> list[CaseResult]:
    request = JudgeRequest(cases[0].reward, cases[0].params)
    try:
        judge = Judge([request], directories, time_limit)
    except VerifierError as error:
        reason = f"no such verifier: {error}"
        return [CaseResult(c.id, c.line, c.reward, False, c.expected, None, reason) for c in cases]
    with judge:
        scores = judge.score([case.completion for case in cases], {"answer": [case.answer for case in cases]})[0]
    return [_result(case, score) for case, score in zip(cases, scores, strict=True)]


def _result(case: _Case, score: Score) -> CaseResult:
    if case.expected is None or score.value is None:
        passed = case.expected is None and score.value is None
    else:
        passed = abs(score.value - case.expected) <= _TOLERANCE
    return CaseResult(case.id, case.line, case.reward, passed, case.expected, score, score.reason)


def _read(line: bytes, number: int) -> _Case:
    """A case from its line. Raises ValueError."""
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError(f"it is a {type(row).__name__}, not an object")
    if missing := [key for key in ("reward", "completion", "expected") if key not in row]:
        raise ValueError(f"it lacks {', '.join(missing)}")
    expected, params = row["expected"], row.get("params")
    if expected is not None and not isinstance(expected, (int, float)):
        raise ValueError(f"expected is {expected!r:.40}; it must be a number or null")
    if not isinstance(params, dict | None):
        raise ValueError("params must be an object")
    return _Case(
        id=str(row.get("id", f"line {number}")),
        line=number,
        reward=str(row["reward"]),
        completion=row["completion"],
        answer=row.get("answer"),
        expected=None if expected is None else float(expected),
        params=params or {},
    )
