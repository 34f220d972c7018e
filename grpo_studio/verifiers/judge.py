"""Judges completions in a child process, with a hard time limit for each item. Nothing a verifier does escapes.

Who is to blame decides the score. When an item raises, runs out of time or ends the child, the same verifier judges
an *accepted example of its own* with the same gold:
- that is scored: the verifier and the gold are fine, so the completion is what cannot be judged: 0;
- that fails as well, or abstains: the gold or the verifier is at fault: abstain.
A child that died is given the item once more first, since the machine may have killed it (memory) for another's sake.
An accepted example is used because a rejected one may be dismissed before the gold is read.

A verifier's first call in a child pays for what it imports lazily: import at the top of its file instead.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers.contract import VerifierSpec, text_of
from grpo_studio.verifiers.discovery import discover
from grpo_studio.verifiers.judge_process import JudgeDied, JudgeProcess, JudgeTimeout

Outcome = Literal["ok", "abstained", "timeout", "error"]
_ROWS_AT_ONCE = 64
# A verifier that hangs on its own example with this many golds, and never answered, is not tried again in this call.
_HUNG_GOLDS = 3
_LONGEST_NOTE = 500


@dataclass(frozen=True)
class JudgeRequest:
    """A verifier by name, with the params it is called with."""

    verifier: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Score:
    """One verifier's word on one completion. `value` is None exactly when `outcome` is 'abstained'.

    'timeout' and 'error' carry the value 0: the completion is what could not be judged.
    """

    value: float | None
    reason: str
    extracted: str | None
    seconds: float
    outcome: Outcome


@dataclass(frozen=True)
class _Item:
    request: int
    row: int
    completion: str  # as JSON
    gold: str  # the columns, as JSON

    @property
    def key(self) -> tuple[int, str]:
        return self.request, self.gold


@dataclass
class _Call:
    """What one call of `score` has found out so far."""

    scores: dict[tuple[int, int], Score] = field(default_factory=dict)
    sound: set[tuple[int, str]] = field(default_factory=set)  # an own example was scored with this gold
    broken: dict[tuple[int, str], str] = field(default_factory=dict)  # or not, and why
    hung: Counter[int] = field(default_factory=Counter)
    answered: set[int] = field(default_factory=set)

    def fault_of(self, item: _Item) -> str | None:
        if item.key in self.broken:
            return self.broken[item.key]
        if self.hung[item.request] >= _HUNG_GOLDS and item.request not in self.answered:
            return "the verifier hangs on its own example, whatever the gold"
        return None


class Judge:
    """Judges for a fixed list of requests; use it as a context manager. Safe to call from any thread.

    The child is started by the first call and again after an item that had to be killed. It dies with this process.
    """

    def __init__(self, requests: Sequence[JudgeRequest], directories: Sequence[Path], time_limit: float = 5.0) -> None:
        """Find the verifiers; raises VerifierError for one that is not there or params that are not plain data.

        `time_limit` is in seconds for one completion and one verifier.
        """
        registry = discover(directories)
        self._specs = [registry.get(request.verifier) for request in requests]
        self._requests = [
            {"path": str(spec.path), "name": spec.name, "params": dict(request.params)}
            for spec, request in zip(self._specs, requests, strict=True)
        ]
        try:
            self._setup = json.dumps({"requests": self._requests})
        except (TypeError, ValueError) as error:
            raise VerifierError(f"the params of a verifier must be plain data: {error}") from error
        self._time_limit = time_limit
        self._process: JudgeProcess | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child. A later `score` would start another."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def score(self, completions: Sequence[Any], columns: Mapping[str, Sequence[Any]]) -> list[list[Score]]:
        """The scores of each request, in order, for each completion (text, chat messages, content blocks or None).

        `columns` hold one value for each completion. Raises VerifierError only for columns of another length; all
        trouble of verifiers, golds and completions is in the scores.
        """
        for name, values in columns.items():
            if len(values) != len(completions):
                raise VerifierError(f"column '{name}' has {len(values)} values for {len(completions)} completions")
        call = _Call()
        with self._lock:
            try:
                for first in range(0, len(completions), _ROWS_AT_ONCE):
                    last = min(first + _ROWS_AT_ONCE, len(completions))
                    self._score_rows(call, range(first, last), completions, columns)
            except BaseException:
                self.close()  # Answers still in the pipe must not be taken for those of the next call.
                raise
        return [[call.scores[request, row] for row in range(len(completions))] for request in range(len(self._specs))]

    def _score_rows(
        self, call: _Call, rows: range, completions: Sequence[Any], columns: Mapping[str, Sequence[Any]]
    ) -> None:
        pending: deque[_Item] = deque()
        for request, spec in enumerate(self._specs):
            missing = [name for name in spec.columns if name not in columns and name not in spec.optional_columns]
            for row in rows:
                if missing:
                    call.scores[request, row] = _abstain(f"{spec.name} needs a column '{missing[0]}'")
                    continue
                given = {name: columns[name][row] for name in spec.columns if name in columns}
                try:
                    gold = json.dumps(given, default=_plain)
                except (TypeError, ValueError, RecursionError) as error:
                    call.scores[request, row] = _abstain(f"the gold is not plain data: {error}")
                    continue
                pending.append(_Item(request, row, json.dumps(text_of(completions[row])), gold))
        raised: list[tuple[_Item, dict[str, Any]]] = []
        while pending:
            try:
                trouble = self._until_trouble(call, pending, raised)
                if trouble is not None:
                    self._blame(call, *trouble)
            except _NoJudge as error:
                for item in pending:
                    call.scores[item.request, item.row] = _abstain(str(error))
                pending.clear()
        for item, answer in raised:
            try:
                self._blame(call, item, answer)
            except _NoJudge as error:
                call.scores[item.request, item.row] = _abstain(str(error))

    def _until_trouble(
        self, call: _Call, pending: deque[_Item], raised: list[tuple[_Item, dict[str, Any]]]
    ) -> tuple[_Item, dict[str, Any]] | None:
        """Judge `pending`, taking items off it, up to one that hangs or ends the child; that one is returned."""
        process = self._ready()
        for _ in range(len(pending)):
            item = pending.popleft()
            fault = process.problems[item.request] or call.fault_of(item)
            if fault:
                call.scores[item.request, item.row] = _abstain(fault)
            else:
                pending.append(item)
        if not pending:
            return None
        answers = self._ask(process, pending)
        while pending:
            answer = next(answers)
            item = pending.popleft()
            if answer["kind"] in ("timeout", "died"):
                return item, answer
            if answer["kind"] == "raised":
                raised.append((item, answer))
            else:
                call.scores[item.request, item.row] = _score(answer)
                call.answered.add(item.request)
        return None

    def _blame(self, call: _Call, item: _Item, answer: dict[str, Any]) -> None:
        """Score an item that raised, hung or ended the child, by the rule at the top of this file."""
        place = item.request, item.row
        if answer["kind"] == "died":
            answer = self._again(item, item.completion)
            if answer["kind"] in ("ok", "abstained"):
                call.scores[place] = _score(answer)
                return
        if item.key not in call.sound and call.fault_of(item) is None:
            probe = self._again(item, json.dumps(_accepted_example(self._specs[item.request])))
            if probe["kind"] == "ok":
                call.sound.add(item.key)
            else:
                whose = "the verifier or the gold is at fault, since its own example with this gold fails too: "
                call.broken[item.key] = _clean(whose + probe["reason"])
                call.hung[item.request] += probe["kind"] in ("timeout", "died")
        fault = call.fault_of(item)
        if fault is not None:
            call.scores[place] = _abstain(fault, answer["seconds"])
        else:
            outcome: Outcome = "timeout" if answer["kind"] == "timeout" else "error"
            call.scores[place] = Score(0.0, _clean(answer["reason"]), None, answer["seconds"], outcome)

    def _again(self, item: _Item, completion: str) -> dict[str, Any]:
        one = _Item(item.request, item.row, completion, item.gold)
        return next(self._ask(self._ready(), [one]))

    def _ready(self) -> JudgeProcess:
        if self._process is not None and not self._process.alive():
            self.close()
        if self._process is None:
            try:
                self._process = JudgeProcess(self._setup)
            except JudgeDied as error:
                raise _NoJudge(f"the judge process does not start: {error}") from error
            except JudgeTimeout as error:
                raise _NoJudge("the judge process does not start in time") from error
        return self._process

    def _ask(self, process: JudgeProcess, items: Iterable[_Item]) -> _Answers:
        return _Answers(self, process, list(items), self._time_limit)


class _NoJudge(Exception):
    """There is no child to judge with, for no fault of any item."""


class _Answers:
    """The answers to one batch, one at a time; ends the child when it hangs or breaks."""

    def __init__(self, judge: Judge, process: JudgeProcess, items: Sequence[_Item], limit: float) -> None:
        self._judge, self._process, self._limit = judge, process, limit
        rows: dict[tuple[str, str], int] = {}
        places = [[item.request, rows.setdefault((item.completion, item.gold), len(rows))] for item in items]
        documents = ",".join(f"[{completion},{gold}]" for completion, gold in rows)
        self._batch: str | None = f'{{"rows":[{documents}],"items":{json.dumps(places)}}}'

    def __next__(self) -> dict[str, Any]:
        try:
            if self._batch is not None:
                batch, self._batch = self._batch, None
                self._send(batch)
            return self._process.receive(self._limit)
        except JudgeTimeout:
            self._judge.close()
            reason = f"over the time limit of {self._limit:g} s"
            return {"kind": "timeout", "reason": reason, "seconds": self._limit}
        except JudgeDied as error:
            self._judge.close()
            return {"kind": "died", "reason": str(error), "seconds": 0.0}

    def _send(self, batch: str) -> None:
        try:
            self._process.send(batch, max(self._limit, 10.0))
        except JudgeTimeout as error:
            raise JudgeDied("the judge process does not read") from error


def _score(answer: Mapping[str, Any]) -> Score:
    """A child's answer as a score; it is data from another process, so nothing about it is taken for granted."""
    value, extracted = answer.get("value"), answer.get("extracted")
    reason, seconds = _clean(str(answer.get("reason", ""))), float(answer.get("seconds", 0.0))
    extracted = None if extracted is None else _clean(str(extracted))
    if answer.get("kind") == "ok" and isinstance(value, float):
        return Score(value, reason, extracted, seconds, "ok")
    return Score(None, reason, extracted, seconds, "abstained")


def _abstain(reason: str, seconds: float = 0.0) -> Score:
    return Score(None, _clean(reason), None, seconds, "abstained")


def _clean(text: str) -> str:
    """Short, and free of lone surrogates, which neither SQLite nor a browser takes."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= _LONGEST_NOTE else text[: _LONGEST_NOTE - 1] + "…"


def _accepted_example(spec: VerifierSpec) -> str:
    best = max(spec.examples, key=lambda example: -1.0 if example.expected is None else example.expected)
    return text_of(best.completion)


def _plain(value: Any) -> Any:
    """Values that data sets hold besides JSON's own: NumPy scalars and arrays, sets, dates."""
    for method in ("tolist", "item"):
        convert = getattr(value, method, None)
        if callable(convert):
            return convert()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    return str(value)
