"""Holds a verifier to its own examples, through a real judge: what it returns, raises or hangs on has a name here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers.contract import REQUIRED, Example, VerifierSpec
from grpo_studio.verifiers.judge import Judge, JudgeRequest, Score
from grpo_studio.verifiers.loading import load_checked

_TOLERANCE = 1e-6
_SHOWN = 300


@dataclass(frozen=True)
class JudgedExample:
    """`problem` is one line, empty when the example got the score that it states."""

    verifier: str
    score: Score
    problem: str


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


def judged_examples(spec: VerifierSpec, directories: Sequence[Path], time_limit: float = 5.0) -> list[JudgedExample]:
    """The examples of a verifier that a judge process scores, in their order, each judged once.

    Raises:
        VerifierError: an example has params that are not plain data.
    """
    scores = _scores(spec, directories, time_limit)
    judged = []
    for number, (example, score) in enumerate(zip(spec.examples, scores, strict=True), start=1):
        wrong = _wrong_values(spec, example) or _wrong_score(example, score)
        judged.append(JudgedExample(spec.name, score, _line(f"{spec.name}: example {number}{wrong}") if wrong else ""))
    return judged


def problems_of_examples(spec: VerifierSpec, judged: Sequence[JudgedExample]) -> list[str]:
    """What is wrong with a verifier whose examples were judged, one line each."""
    scores = [one.score for one in judged]
    if all(score.value is None and score.outcome == "abstained" for score in scores) and any(
        example.expected is not None and not _wrong_values(spec, example) for example in spec.examples
    ):
        reason = next((score.reason for score in scores if score.reason), "")
        return [_line(f"{spec.name} returned None for all of its examples: it judges nothing ({reason})")]
    return [one.problem for one in judged if one.problem]


def _problems(spec: VerifierSpec, directories: Sequence[Path], time_limit: float) -> list[str]:
    try:
        return problems_of_examples(spec, judged_examples(spec, directories, time_limit))
    except VerifierError as error:
        return [_line(f"{spec.name}: {error}")]


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


def _wrong_values(spec: VerifierSpec, example: Example) -> str:
    """What an example lacks, or gives although the verifier does not take it."""
    needed = {name for name, default in spec.params.items() if default is REQUIRED}
    needed |= set(spec.columns) - spec.optional_columns
    if missing := sorted(needed - set(example.values)):
        return f" lacks '{missing[0]}'"
    strange = [name for name in example.values if name not in spec.params and not spec.takes(name)]
    return f" gives '{strange[0]}', which the verifier does not take" if strange else ""


def _wrong_score(example: Example, score: Score) -> str:
    """What is wrong with the score of an example, or nothing."""
    expected = "None (abstain)" if example.expected is None else f"{example.expected:g}"
    if score.outcome == "error":
        return f" raised or ended its process: {score.reason}"
    if score.outcome == "timeout":
        return f" hangs: {score.reason}"
    if score.outcome in ("wrong_type", "non_finite"):
        return f": {score.reason}"
    if score.value is None or example.expected is None:
        if score.value is None and example.expected is None:
            return ""
        got = "None" if score.value is None else f"{score.value:g}"
    elif abs(score.value - example.expected) <= _TOLERANCE:
        return ""
    else:
        got = f"{score.value:g}"
    return f": expected {expected}, got {got}" + (f" ({score.reason})" if score.reason else "")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
