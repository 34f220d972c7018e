"""A request made ready in a judge process, and how an item is judged there. Whatever the verifier does, no exception
leaves here; what it returns is turned into plain data here too, since printing a value can raise or hang as well.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers.contract import VerifierSpec
from grpo_studio.verifiers.discovery import misfits_of, refusal_of
from grpo_studio.verifiers.judge_notes import cut, described, exact, shown
from grpo_studio.verifiers.judge_score import read_returned
from grpo_studio.verifiers.loading import load_file

Answer = list[Any]
"""[kind, value, reason, extracted, seconds]"""
_loaded: dict[str, dict[str, VerifierSpec]] = {}


class Prepared:
    """A verifier with its params, warmed up. `seconds` is how long one item may rightly take, as it says itself."""

    def __init__(self, spec: VerifierSpec, params: Mapping[str, Any], seconds: float) -> None:
        self._spec, self._params, self.seconds = spec, dict(params), seconds
        self._function, self._name = spec.function, spec.name
        self._columns: Mapping[str, Sequence[Any]] | None = None
        self._named: list[str] = []

    def judge(self, completion: str | None, columns: Mapping[str, Sequence[Any]], row: int) -> Answer:
        """The answer for one completion, or for the ideal one."""
        began = time.perf_counter()
        if columns is not self._columns:  # another unit
            self._columns, self._named = columns, [name for name in columns if self._spec.takes(name)]
        try:
            # By name, since one that is left out takes its default; 'completion' itself is always first.
            given = {name: _own(columns[name][row]) for name in self._named}
            if completion is None:
                answer = self._judge_ideal(given)
            else:
                answer = _answer(self._name, self._function(completion, **{**given, **self._params}))
        except BaseException as error:  # SystemExit too: nothing that a verifier raises may end the judge.
            answer = ["raised", None, described(error), None, 0.0]
        answer[4] = time.perf_counter() - began
        return answer

    def _judge_ideal(self, given: Mapping[str, Any]) -> Answer:
        if self._spec.ideal is None:
            return _abstained(f"{self._name} does not say what its ideal completion is")
        try:
            made = self._spec.ideal(**self._spec.with_defaults({**copy.deepcopy(given), **self._params}))
        except Exception as error:
            return _abstained(f"the ideal completion of {self._name} cannot be made: {described(error)}")
        if made is None:
            return _abstained(f"{self._name} cannot read the gold")
        if not isinstance(made, str):
            return _abstained(f"the ideal completion of {self._name} is {shown(made)}; it must be text or None")
        return _answer(self._name, self._function(exact(made), **{**given, **self._params}))


@dataclass(frozen=True)
class Unfit:
    """Why a request cannot be judged at all; `refused`: it is the verifier's own check that refuses its params."""

    reason: str
    refused: bool = False


def prepare(request: Mapping[str, Any]) -> Prepared | Unfit:
    """The verifier, its params and what it needs warmed up."""
    path, name, params = request["path"], request["name"], request["params"]
    try:
        if path not in _loaded:
            _loaded[path] = {spec.name: spec for spec in load_file(Path(path))}
    except VerifierError as error:
        return Unfit(f"{path} does not load in the judge process: {error}")
    spec = _loaded[path].get(name)
    if spec is None:
        return Unfit(f"{path} no longer defines '{name}'")
    if misfits := misfits_of(spec, params):
        return Unfit("; ".join(misfits))
    try:
        if refusal := refusal_of(spec, params):
            return Unfit(refusal, refused=True)
    except VerifierError as error:
        return Unfit(str(error))
    return _warmed(spec, params)


def _warmed(spec: VerifierSpec, params: Mapping[str, Any]) -> Prepared | Unfit:
    filled = spec.with_defaults(params)
    hook = "warm"
    try:
        if spec.warm is not None:
            spec.warm(**filled)
        hook = "seconds"
        seconds = float(spec.seconds(**filled)) if spec.seconds is not None else 0.0
    except BaseException as error:
        return Unfit(cut(f"{spec.name}: its hook '{hook}' failed: {described(error)}"))
    if not 0.0 <= seconds < math.inf:
        return Unfit(f"{spec.name}: its hook 'seconds' returned {seconds}; it must be a number of seconds")
    return Prepared(spec, params, seconds)


def _own(value: Any) -> Any:
    """A value that the verifier may change without changing it for the next one."""
    return copy.deepcopy(value) if isinstance(value, (list, dict)) else value


def _answer(name: str, returned: Any) -> Answer:
    outcome, verdict = read_returned(name, returned)
    reason = verdict.reason or (f"{name} abstained" if outcome == "abstained" else "")
    return [outcome, verdict.score, reason, verdict.extracted, 0.0]


def _abstained(reason: str) -> Answer:
    return ["abstained", None, cut(reason), None, 0.0]
