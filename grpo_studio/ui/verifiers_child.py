"""`python -m grpo_studio.ui.verifiers_child PARENT_PID`: loads one verifier file and judges with it, away from the app.

Reads one JSON object from stdin, `{"path", "directories", "mode": "examples" | "try", ...}`, and writes one. Whatever
the file does as it is loaded ends this process and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grpo_studio.errors import StudioError, VerifierError
from grpo_studio.naming import nearest_names
from grpo_studio.ui.verifiers_catalogue import describe_whole
from grpo_studio.verifiers.contract import VerifierSpec
from grpo_studio.verifiers.discovery import load_file, load_in_this_process
from grpo_studio.verifiers.judge import Judge, JudgeRequest, Score
from grpo_studio.verifiers.judge_examples import judged_examples, problems_of_examples
from grpo_studio.verifiers.judge_process import MEMORY_LIMIT
from grpo_studio.verifiers.lifeline import die_with_parent, limit_memory

Answer = dict[str, Any]


def answer_to(request: Mapping[str, Any]) -> Answer:
    """What came of the file: `{"problems", "line", "verifiers"}`, with `examples` or `score` as the mode says."""
    path, directories = Path(request["path"]), [Path(one) for one in request["directories"]]
    try:
        specs = load_file(path)
        if not specs:
            raise VerifierError("the file defines no function marked with @verifier")
        described = {"verifiers": [describe_whole(spec, True) for spec in specs]}
        if request["mode"] == "try":
            return found_out([]) | described | {"score": asdict(_tried(specs, request, directories))}
        judged = [(spec, judged_examples(spec, directories)) for spec in specs if spec.place == "judge"]
    except StudioError as error:
        return found_out([str(error)])
    examples = [
        {"verifier": one.verifier, "score": asdict(one.score), "passed": not one.problem}
        for _, rows in judged
        for one in rows
    ]
    problems = [problem for spec, rows in judged for problem in problems_of_examples(spec, rows)]
    return found_out(problems) | described | {"examples": examples}


def found_out(problems: Sequence[str]) -> Answer:
    """An answer that names these problems, and the line of the file that the first one names."""
    lines = re.findall(r"\bline (\d{1,6})\b", problems[0]) if problems else []
    return {"problems": list(problems), "line": int(lines[-1]) if lines else None, "verifiers": []}


def _tried(specs: Sequence[VerifierSpec], request: Mapping[str, Any], directories: Sequence[Path]) -> Score:
    by_name = {spec.name: spec for spec in specs}
    name = request["verifier"]
    if name not in by_name:
        raise VerifierError(f"no verifier {name!r} in this text; {nearest_names(name, sorted(by_name))}")
    columns = {column: [value] for column, value in request["columns"].items()}
    with Judge([JudgeRequest(name, request["params"])], directories, specs=[by_name[name]]) as judge:
        return judge.score([request["completion"]], columns)[0][0]


def main() -> None:
    """Answer the one request on stdin."""
    die_with_parent(int(sys.argv[1]))
    limit_memory(MEMORY_LIMIT)
    load_in_this_process()
    request = json.loads(sys.stdin.buffer.read())
    # Kept for the answer alone: what the file prints, even past Python, must not get between.
    channel, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    data = memoryview(json.dumps(answer_to(request), default=str).encode("ascii"))
    while data:
        data = data[os.write(channel, data) :]
    os._exit(0)  # a thread or an exit hook of the file must not hold the answer up


if __name__ == "__main__":
    main()
