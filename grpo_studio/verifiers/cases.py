"""Runs a file of cases, one JSON object a line, through real judges: verifiers against expected values.

A case is `id, reward, completion, answer, params, expected`; `expected: null` means that it must abstain, for which a
refusal of the params by the verifier's `check` counts, and nothing else that keeps it from judging. All other keys are
notes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpo_studio.errors import DataError, VerifierError
from grpo_studio.verifiers.discovery import discover
from grpo_studio.verifiers.judge import Judge, JudgeRequest, Score

TIME_LIMIT = 2.5
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

    @property
    def setting(self) -> tuple[str, str]:
        return self.reward, json.dumps(self.params, sort_keys=True)


def run_cases(
    path: Path, registry_dirs: Sequence[Path], only: set[str] | None = None, time_limit: float = TIME_LIMIT
) -> list[CaseResult]:
    """The results in the file's order; `only` keeps the cases of these rewards (and lines that cannot be read).

    Raises DataError when the file cannot be read.
    """
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise DataError(f"cannot read the cases in {path}: {error.strerror or error}") from error
    results: list[CaseResult] = []
    cases: list[_Case] = []
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
            cases.append(case)
    results.extend(_judged(cases, registry_dirs, time_limit))
    return sorted(results, key=lambda result: result.line)


def summary(results: Sequence[CaseResult]) -> str:
    """The last line of `score`: 'N passed, M failed'."""
    passed = sum(result.passed for result in results)
    return f"{passed} passed, {len(results) - passed} failed"


def _judged(cases: Sequence[_Case], directories: Sequence[Path], time_limit: float) -> list[CaseResult]:
    """All cases through one judge, with a request for each distinct setting of a verifier."""
    results: list[CaseResult] = []
    requests: dict[tuple[str, str], JudgeRequest] = {}
    faults = _faults({case.reward for case in cases}, directories)
    kept: list[_Case] = []
    for case in cases:
        if case.reward in faults:
            results.append(_not_judged(case, faults[case.reward]))
        else:
            kept.append(case)
            requests.setdefault(case.setting, JudgeRequest(case.reward, case.params))
    places = {setting: place for place, setting in enumerate(requests)}
    with Judge(list(requests.values()), directories, time_limit) as judge:
        scores = judge.score_each(
            [places[case.setting] for case in kept],
            [case.completion for case in kept],
            {"answer": [case.answer for case in kept]},
        )
        unable = judge.unable()
    for case, score in zip(kept, scores, strict=True):
        if score.outcome in ("wrong_type", "non_finite"):
            results.append(_not_judged(case, score.reason))
        elif score.outcome == "abstained" and (why := unable.get(places[case.setting])) is not None:
            results.append(_not_judged(case, why))
        else:
            results.append(_result(case, score))
    return results


def _faults(names: set[str], directories: Sequence[Path]) -> dict[str, str]:
    """Why cases of these rewards cannot be judged, for those that cannot."""
    registry, faults = discover(directories), {}
    for name in names:
        try:
            if registry.get(name).place != "judge":
                faults[name] = f"{name} is scored by the trainer on its device, not by a judge process"
        except VerifierError as error:
            faults[name] = f"no such verifier: {error}"
    return faults


def _not_judged(case: _Case, why: str) -> CaseResult:
    return CaseResult(case.id, case.line, case.reward, False, case.expected, None, why)


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
