"""`python -m grpo_studio score`: verifiers against a file of cases with expected values."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from grpo_studio.errors import VerifierError
from grpo_studio.settings import Settings
from grpo_studio.verifiers.cases import CaseResult, run_cases, summary


def add_score_arguments(command: argparse.ArgumentParser) -> None:
    """The arguments of `score` besides those of all commands."""
    command.add_argument("--cases", required=True, help="JSONL: id, reward, completion, answer, params, expected")
    command.add_argument("--reward", action="append", help="only cases of this verifier; may be given more than once")


def score(options: argparse.Namespace, settings: Settings) -> tuple[dict[str, Any], list[str], int]:
    """The JSON document, the lines for people (the last one counts), and the exit code: 1 when a case fails.

    Raises:
        StudioError: the file cannot be read or holds no case.
    """
    only = set(options.reward) if options.reward else None
    results = run_cases(Path(options.cases).expanduser(), settings.rewards_dirs, only=only)
    if not results:
        of = f" of {', '.join(options.reward)}" if options.reward else ""
        raise VerifierError(f"{options.cases} holds no case{of}; give one JSON object a line")
    failed = [result for result in results if not result.passed]
    document = {
        "passed": len(results) - len(failed),
        "failed": len(failed),
        "cases": [_row(result) for result in results],
    }
    return document, [*map(_line, failed), summary(results)], 1 if failed else 0


def _row(result: CaseResult) -> dict[str, Any]:
    return {
        "id": result.id,
        "line": result.line,
        "reward": result.reward,
        "passed": result.passed,
        "expected": result.expected if result.expected is not None and math.isfinite(result.expected) else None,
        "value": result.score.value if result.score else None,
        "reason": _reason(result),
    }


def _line(result: CaseResult) -> str:
    """A failure by its line, since ids may come twice."""
    if result.score is None:
        text = result.reason if not result.reward else f"line {result.line}, {result.id}: {result.reason}"
    else:
        wanted = "an abstention" if result.expected is None else f"{result.expected:g}"
        got = "an abstention" if result.score.value is None else f"{result.score.value:g}"
        text = f"line {result.line}, {result.id}: {result.reward}: expected {wanted}, got {got}"
        text += f": {_reason(result)}" if _reason(result) else ""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def _reason(result: CaseResult) -> str:
    return result.reason or (result.score.reason if result.score else "")
