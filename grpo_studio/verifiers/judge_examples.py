"""Holds a verifier to its own examples, through a real judge: what it returns, raises or hangs on has a name here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers.contract import REQUIRED, Example, VerifierSpec
from grpo_studio.verifiers.judge import Judge, JudgeRequest, Score
from grpo_studio.verifiers.loading import load_checked

_TOLERANCE = 1e-6
_SHOWN = 300


def check_examples(verifier: VerifierSpec | Path, directories: Sequence[Path], time_limit: float = 5.0) -> list[str]:
    """All that is wrong with a verifier, or with a file of them, one line each; empty when every example holds.

    `directories` are where an ensemble finds its parts. A verifier that the trainer scores is not run: no problems.
    """
    try:
        specs = load_checked(verifier) if isinstance(verifier, Path) else [verifier]
    except VerifierError as error:
        return [_line(str(error))]
    if not specs:
        return [f"{verifier} defines no function marked with @verifier"]
    return [problem for spec in specs if spec.place == "judge" for problem in _problems(spec, directories, time_limit)]


def _problems(spec: VerifierSpec, directories: Sequence[Path], time_limit: float) -> list[str]:
    if unknown := _unknown_values(spec):
        return unknown
    try:
        scores = _scores(spec, directories, time_limit)
    except VerifierError as error:
        return [_line(f"{spec.name}: {error}")]
    if all(score.value is None and score.outcome == "abstained" for score in scores) and any(
        example.expected is not None for example in spec.examples
    ):
        reason = next((score.reason for score in scores if score.reason), "")
        return [_line(f"{spec.name} returned None for all of its examples: it judges nothing ({reason})")]
    told = [
        _told(spec.name, number, example, score)
        for number, (example, score) in enumerate(zip(spec.examples, scores, strict=True), start=1)
    ]
    return [_line(problem) for problem in told if problem]


def _scores(spec: VerifierSpec, directories: Sequence[Path], time_limit: float) -> list[Score]:
    """The score of each example as it is: here nobody asks who is to blame. Raises VerifierError."""
    requests: dict[str, JudgeRequest] = {}
    alike: dict[frozenset[str], list[int]] = {}  # examples that give the same columns
    columns = [{key: value for key, value in one.values.items() if key not in spec.params} for one in spec.examples]
    settings = [{key: value for key, value in one.values.items() if key in spec.params} for one in spec.examples]
    keys = [json.dumps(setting, sort_keys=True, default=repr) for setting in settings]
    for place, (key, setting) in enumerate(zip(keys, settings, strict=True)):
        requests.setdefault(key, JudgeRequest(spec.name, setting))
        alike.setdefault(frozenset(columns[place]), []).append(place)
    numbers = {key: number for number, key in enumerate(requests)}
    scores: dict[int, Score] = {}
    with Judge(list(requests.values()), directories, time_limit, specs=[spec] * len(requests)) as judge:
        for names, places in alike.items():
            given = {name: [columns[place][name] for place in places] for name in names}
            completions = [spec.examples[place].completion for place in places]
            found = judge.score_each([numbers[keys[place]] for place in places], completions, given, blame=False)
            scores |= zip(places, found, strict=True)
    return [scores[place] for place in range(len(spec.examples))]


def _unknown_values(spec: VerifierSpec) -> list[str]:
    """Examples that lack a column or a param without default, or give one that the verifier does not take."""
    problems = []
    needed = {name for name, default in spec.params.items() if default is REQUIRED}
    needed |= set(spec.columns) - spec.optional_columns
    for number, example in enumerate(spec.examples, start=1):
        if missing := sorted(needed - set(example.values)):
            problems.append(f"{spec.name}: example {number} lacks '{missing[0]}'")
        strange = [name for name in example.values if name not in spec.params and not spec.takes(name)]
        if strange:
            problems.append(f"{spec.name}: example {number} gives '{strange[0]}', which the verifier does not take")
    return problems


def _told(name: str, number: int, example: Example, score: Score) -> str | None:
    """What is wrong with the score of an example, or None."""
    where = f"{name}: example {number}"
    expected = "None (abstain)" if example.expected is None else f"{example.expected:g}"
    if score.outcome == "error":
        return f"{where} raised or ended its process: {score.reason}"
    if score.outcome == "timeout":
        return f"{where} hangs: {score.reason}"
    if score.outcome in ("wrong_type", "non_finite"):
        return f"{where}: {score.reason}"
    if score.value is None or example.expected is None:
        if score.value is None and example.expected is None:
            return None
        got = "None" if score.value is None else f"{score.value:g}"
    elif abs(score.value - example.expected) <= _TOLERANCE:
        return None
    else:
        got = f"{score.value:g}"
    return f"{where}: expected {expected}, got {got}" + (f" ({score.reason})" if score.reason else "")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
