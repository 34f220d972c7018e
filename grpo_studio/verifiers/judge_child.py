"""The process that runs verifiers: `python -m grpo_studio.verifiers.judge_child PARENT_PID MEMORY_LIMIT`.

Protocol, one JSON document a line, on duplicates of fd 0 and 1 that verifiers do not know of:
in first   {"requests": [{"path", "name", "params"}]}        out  {"problems": [message or null, for each request]}
in a batch {"rows": [[completion, {column: value}]], "items": [[request, row]]}
                                   out, for each item and in order, {"kind", "value", "reason", "extracted", "seconds"}
A `kind` is `ok`, `abstained` or `raised`. Each answer is written at once: silence is how the parent tells which
item hangs. What a verifier prints goes nowhere; the environment was emptied by the parent.
"""

from __future__ import annotations

import faulthandler
import json
import math
import numbers
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers.contract import Verdict, VerifierSpec
from grpo_studio.verifiers.discovery import load_file, problems_of
from grpo_studio.verifiers.lifeline import die_with_parent, limit_memory

LONGEST_NOTE = 500


def main() -> None:
    """Serve batches until the pipe ends."""
    parent, memory = (int(argument) for argument in sys.argv[1:3])
    die_with_parent(parent)
    limit_memory(memory)
    requests, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    faulthandler.enable()  # A crash in C code leaves its traceback in the worker's log.

    judged = [_prepare(request) for request in json.loads(requests.readline())["requests"]]
    _send(answers, {"problems": [one if isinstance(one, str) else None for one in judged]})
    for line in requests:
        batch = json.loads(line)
        for request, row in batch["items"]:
            completion, columns = batch["rows"][row]
            call = judged[request]
            assert not isinstance(call, str), "the parent never sends an item of a request that has a problem"
            _send(answers, _judge(call[0], call[1], completion, columns))


def _send(channel: int, document: Mapping[str, Any]) -> None:
    data = json.dumps(document).encode() + b"\n"
    while data:
        data = data[os.write(channel, data) :]


def _prepare(request: Mapping[str, Any]) -> tuple[VerifierSpec, dict[str, Any]] | str:
    """The verifier and its params, or why this request cannot be judged at all."""
    try:
        specs = {spec.name: spec for spec in load_file(Path(request["path"]))}
    except VerifierError as error:
        return f"{request['path']} does not load in the judge process: {error}"
    if request["name"] not in specs:
        return f"{request['path']} no longer defines '{request['name']}'"
    spec = specs[request["name"]]
    problems = problems_of(spec, request["params"], spec.columns)
    return "; ".join(problems) if problems else (spec, dict(request["params"]))


def _judge(
    spec: VerifierSpec, params: Mapping[str, Any], completion: str, columns: Mapping[str, Any]
) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        # By name, since one that is left out takes its default; 'completion' itself is always first.
        given = {name: columns[name] for name in spec.columns if name in columns}
        answer = _as_answer(spec.name, spec.function(completion, **given, **params))
    except BaseException as error:  # SystemExit too: nothing that a verifier raises may end the judge.
        answer = {"kind": "raised", "reason": _cut(_described(error))}
    answer["seconds"] = time.perf_counter() - began
    return answer


def _as_answer(name: str, returned: Any) -> dict[str, Any]:
    verdict = returned if isinstance(returned, Verdict) else Verdict(returned)
    note = {"reason": _cut(verdict.reason), "extracted": None}
    if verdict.extracted is not None:
        note["extracted"] = _cut(verdict.extracted)
    score: Any = verdict.score
    if score is None:
        return {"kind": "abstained", **note, "reason": note["reason"] or f"{name} abstained"}
    if not isinstance(score, numbers.Real):
        wrong = (
            f"{name} returned {_shown(score)} ({type(score).__name__}); a verifier returns a number, None or a Verdict"
        )
        return {"kind": "abstained", **note, "reason": _cut(wrong)}
    try:
        value = float(score)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        return {"kind": "abstained", **note, "reason": f"{name} returned {value}, which is not a finite number"}
    return {"kind": "ok", "value": value, **note}


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {_shown(error, str)}".rstrip(": ")


def _shown(value: Any, how: Callable[[Any], str] = repr) -> str:
    """`how` may be code of the verifier's own making, which can raise as well."""
    try:
        return str(how(value))[:200]
    except Exception as error:
        return f"(cannot be shown: {type(error).__name__})"


def _cut(text: Any) -> str:
    note: str = text if isinstance(text, str) else _shown(text, str)
    return note if len(note) <= LONGEST_NOTE else note[: LONGEST_NOTE - 1] + "…"


if __name__ == "__main__":
    main()
