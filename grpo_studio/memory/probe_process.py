"""One child of a probe: started, listened to, and its end told apart: done, out of memory, or another failure."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from grpo_studio.memory.probe_document import OUT_OF_MEMORY
from grpo_studio.process_identity import start_token
from grpo_studio.shown import shown
from grpo_studio.worker_process import kill_session

LAST_WORDS = 4000
PROGRESS_BAR = re.compile(r"[0-9]%\|")
SAYS_NO_MEMORY = re.compile(
    r"bad_alloc|MemoryError|out of memory|(can't|cannot|failed to) (allocate|map segment)|"
    r"memory allocation of \d+ bytes failed",
    re.IGNORECASE,
)
"""What a process says last that could not even tell us that it had no memory."""


@dataclass
class Answer:
    """What a child found. `error` is one line, None when it did all that it was asked; `memory`: for want of memory."""

    found: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    error: str | None = None
    memory: bool = False


def ask(
    module: str,
    spec: Mapping[str, Any],
    folder: Path,
    environment: Mapping[str, str],
    tell: Callable[[str], None],
    take: Callable[[dict[str, Any]], None] = lambda found: None,
) -> Answer:
    """Run `python -m module` to its end; it never outlives this process or an interruption.

    Args:
        tell: called with what the child is at.
        take: called with each of its findings as it comes.
    """
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".json", delete=False, encoding="utf-8") as file:
        json.dump(spec, file)
    with tempfile.TemporaryFile(dir=folder) as words:
        child = subprocess.Popen(
            [sys.executable, "-m", module, str(os.getpid()), file.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=words,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
        answer, started = Answer(), start_token(child.pid)
        try:
            for line in child.stdout or ():
                _listen(json.loads(line), answer, tell, take)
            child.wait()
        finally:
            child.kill()
            child.wait()
            if started is not None:
                kill_session(child.pid, started)  # judges and what verifiers started
            if child.stdout is not None:
                child.stdout.close()
        if child.returncode != 0 and answer.error is None:
            answer.error, answer.memory = _why(child.returncode, _last_words(words))
    if answer.memory:
        answer.error = f"{OUT_OF_MEMORY}: {answer.error}"
    return answer


def _listen(
    message: Mapping[str, Any],
    answer: Answer,
    tell: Callable[[str], None],
    take: Callable[[dict[str, Any]], None],
) -> None:
    if "tell" in message:
        tell(message["tell"])
    elif "found" in message:
        found = dict(message["found"])
        if "note" in found:
            answer.notes.append(found.pop("note"))
        answer.found |= found
        take(found)
    elif "error" in message:
        answer.error, answer.memory = message["error"], bool(message["memory"])


def _why(code: int, words: list[str]) -> tuple[str, bool]:
    """Why a child ended that could not say so itself, and whether for want of memory."""
    last = f": {shown(words[-1], 300)}" if words else ""
    if code == -signal.SIGKILL:
        return "the process was killed by signal 9, which is how a system takes memory back", True
    memory = any(SAYS_NO_MEMORY.search(line) for line in words[-3:])
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return f"the process {how}{last}", memory


def _last_words(words: IO[bytes]) -> list[str]:
    size = words.seek(0, os.SEEK_END)
    words.seek(max(0, size - LAST_WORDS))
    lines = words.read().decode("utf-8", "replace").strip().splitlines()
    return [line.strip() for line in lines if line.strip() and not PROGRESS_BAR.search(line)]
