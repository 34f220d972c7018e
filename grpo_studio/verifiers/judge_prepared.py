"""A request made ready in a judge process, and how an item is judged there. Whatever the verifier does, no exception
leaves here; what it returns is turned into plain data here too, since printing a value can raise or hang as well.
"""

from __future__ import annotations

import copy
import math
import numbers
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers.contract import Verdict, VerifierSpec
from grpo_studio.verifiers.discovery import problems_of
from grpo_studio.verifiers.loading import load_file

Answer = list[Any]
"""[kind, value, reason, extracted, seconds]"""
_LONGEST_NOTE: Final = 500
_LONGEST_SHOWN: Final = 200
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
            answer = ["raised", None, _described(error), None, 0.0]
        answer[4] = time.perf_counter() - began
        return answer

    def _judge_ideal(self, given: Mapping[str, Any]) -> Answer:
        if self._spec.ideal is None:
            return _abstained(f"{self._name} does not say what its ideal completion is")
        try:
            made = self._spec.ideal(**self._spec.with_defaults({**copy.deepcopy(given), **self._params}))
        except Exception as error:
            return _abstained(f"the ideal completion of {self._name} cannot be made: {_described(error)}")
        if made is None:
            return _abstained(f"{self._name} cannot read the gold")
        if not isinstance(made, str):
            return _abstained(f"the ideal completion of {self._name} is {_shown(made)}; it must be text or None")
        return _answer(self._name, self._function(_exact(made), **{**given, **self._params}))


def prepare(request: Mapping[str, Any]) -> Prepared | str:
    """The verifier, its params and what it needs warmed up, or why this request cannot be judged at all."""
    path, name, params = request["path"], request["name"], request["params"]
    try:
        if path not in _loaded:
            _loaded[path] = {spec.name: spec for spec in load_file(Path(path))}
    except VerifierError as error:
        return f"{path} does not load in the judge process: {error}"
    spec = _loaded[path].get(name)
    if spec is None:
        return f"{path} no longer defines '{name}'"
    if problems := problems_of(spec, params, spec.columns):
        return "; ".join(problems)
    filled = spec.with_defaults(params)
    hook = "warm"
    try:
        if spec.warm is not None:
            spec.warm(**filled)
        hook = "seconds"
        seconds = float(spec.seconds(**filled)) if spec.seconds is not None else 0.0
    except BaseException as error:
        return _cut(f"{name}: its hook '{hook}' failed: {_described(error)}")
    if not 0.0 <= seconds < math.inf:
        return f"{name}: its hook 'seconds' returned {seconds}; it must be a number of seconds"
    return Prepared(spec, params, seconds)


def _own(value: Any) -> Any:
    """A value that the verifier may change without changing it for the next one."""
    return copy.deepcopy(value) if isinstance(value, (list, dict)) else value


def _answer(name: str, returned: Any) -> Answer:
    if isinstance(returned, Verdict):
        score, reason = returned.score, _cut(returned.reason)
        extracted = None if returned.extracted is None else _cut(returned.extracted)
    else:
        score, reason, extracted = returned, "", None
    if type(score) is float and math.isfinite(score):
        return ["ok", score, reason, extracted, 0.0]
    if score is None:
        return ["abstained", None, reason or f"{name} abstained", extracted, 0.0]
    if isinstance(score, bool):
        wrong = f"{name} returned {score} (bool); return {float(score)} instead"
        return ["wrong_type", None, wrong, extracted, 0.0]
    if not isinstance(score, numbers.Real):
        wrong = f"{name} returned {_shown(score)} ({type(score).__name__}); return a number, None or a Verdict"
        return ["wrong_type", None, _cut(wrong), extracted, 0.0]
    try:
        value = float(score)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        return ["non_finite", None, f"{name} returned {value}, which is not a finite number", extracted, 0.0]
    return ["ok", value, reason, extracted, 0.0]


def _abstained(reason: str) -> Answer:
    return ["abstained", None, _cut(reason), None, 0.0]


def _described(error: BaseException) -> str:
    return _cut(f"{type(error).__name__}: {_shown(error, str)}".rstrip(": "))


def _shown(value: Any, how: Callable[[Any], str] = repr) -> str:
    """`how` may be code of the verifier's own making, which can raise as well."""
    try:
        return _exact(how(value))[:_LONGEST_SHOWN]
    except BaseException as error:
        return f"(cannot be shown: {type(error).__name__})"


def _cut(text: Any) -> str:
    note = text if type(text) is str else _exact(text) if isinstance(text, str) else _shown(text, str)
    return note if len(note) <= _LONGEST_NOTE else note[: _LONGEST_NOTE - 1] + "…"


def _exact(text: str) -> str:
    """Plain `str`: a subclass may have methods of its own."""
    return str.__str__(text)
