"""A verifier's own examples, each judged once: what it was given, and what is wrong with that."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers.contract import REQUIRED, Example, VerifierSpec
from grpo_studio.verifiers.judge import Judge, JudgeRequest, Score

_TOLERANCE = 1e-6
_SHOWN = 300
_HOW = {"error": "raised or ended its process: ", "timeout": "hangs: "}


@dataclass(frozen=True)
class JudgedExample:
    """`problem` is one line, empty when the example got the score that it states."""

    verifier: str
    score: Score
    problem: str


def judged_examples(spec: VerifierSpec, directories: Sequence[Path]) -> list[JudgedExample]:
    """The examples of a verifier that a judge process scores, in their order.

    Raises:
        VerifierError: an example has params that are not plain data.
    """
    params = [{key: value for key, value in one.values.items() if key in spec.params} for one in spec.examples]
    keys = [json.dumps(one, sort_keys=True, default=repr) for one in params]
    distinct = dict(zip(keys, params, strict=True))  # so that each setting is made ready once
    places = {key: place for place, key in enumerate(distinct)}
    requests = [JudgeRequest(spec.name, one) for one in distinct.values()]
    judged = []
    try:
        with Judge(requests, directories, specs=[spec] * len(requests)) as judge:
            for number, (example, key) in enumerate(zip(spec.examples, keys, strict=True), 1):
                columns = {name: [value] for name, value in example.values.items() if name not in spec.params}
                # Without blame: of its own example nobody asks whether the text is at fault.
                [score] = judge.score_each([places[key]], [example.completion], columns, blame=False)
                wrong = _wrong_values(spec, example) or _wrong_score(example, score)
                problem = f"{spec.name}: example {number} {wrong}" if wrong else ""
                judged.append(JudgedExample(spec.name, score, _line(problem)))
    except VerifierError as error:
        raise VerifierError(f"{spec.name}: {error}") from error
    return judged


def _wrong_values(spec: VerifierSpec, example: Example) -> str:
    """What it lacks, or gives although the verifier does not take it."""
    needed = [name for name in spec.columns if name not in spec.optional_columns]
    needed += [name for name, default in spec.params.items() if default is REQUIRED]
    if missing := [name for name in needed if name not in example.values]:
        return f"lacks '{missing[0]}'"
    strange = [name for name in example.values if name not in spec.params and not spec.takes(name)]
    return f"gives '{strange[0]}', which the verifier does not take" if strange else ""


def _wrong_score(example: Example, score: Score) -> str:
    if score.outcome not in ("ok", "abstained"):
        return _HOW.get(score.outcome, "cannot be scored: ") + score.reason
    if score.value is None or example.expected is None:
        if score.value is None and example.expected is None:
            return ""
    elif abs(score.value - example.expected) <= _TOLERANCE:
        return ""
    expected, got = ("None (abstain)" if one is None else f"{one:g}" for one in (example.expected, score.value))
    return f"should get {expected} and got {got}" + (f" ({score.reason})" if score.reason else "")


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
