"""Runs a verifier's text that is not (yet) a file to be used, in a child process with a time limit. No gradio here."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grpo_studio.errors import VerifierError
from grpo_studio.ui.verifiers_files import encoded
from grpo_studio.verifiers.judge_spawn import spawn

SECONDS = 90.0
AT_ONCE = threading.BoundedSemaphore(2)

Answer = dict[str, Any]


def run_code(
    file: str, code: str, request: Mapping[str, Any], directories: Sequence[Path] = (), seconds: float = SECONDS
) -> Answer:
    """The child's answer (see `verifiers_child`) on `code` under the name of `file`.

    `directories` are where it finds verifiers that it calls. Trouble of the code is in the answer. Raises UsageError
    for a text that cannot be a file, and VerifierError when too many checks are under way.
    """
    data = encoded(code)
    if not AT_ONCE.acquire(timeout=10):
        raise VerifierError("other checks are under way; try again in a moment")
    try:
        with tempfile.TemporaryDirectory(prefix="verifier-", ignore_cleanup_errors=True) as folder:
            path = Path(folder) / file
            path.write_bytes(data)
            question = {**request, "path": str(path), "directories": [str(one) for one in directories]}
            return _ask(json.dumps(question), seconds)
    finally:
        AT_ONCE.release()


def _ask(question: str, seconds: float) -> Answer:
    child = spawn("grpo_studio.ui.verifiers_child", [])
    try:
        written, _ = child.communicate(question.encode("ascii"), timeout=seconds)
    except subprocess.TimeoutExpired:
        return _trouble(f"the file takes over {seconds:g} s to load and be judged; it may hang as it is loaded")
    finally:
        _end(child)
    try:
        answer = json.loads(written)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        return _trouble(f"the file ends the process that loads it ({_how(child.returncode)})")
    return answer


def _trouble(problem: str) -> Answer:
    return {"problems": [problem], "line": None, "verifiers": []}


def _how(code: int) -> str:
    return f"exit status {code}" if code >= 0 else f"signal {-code}"


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and what is left of its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    child.wait()
