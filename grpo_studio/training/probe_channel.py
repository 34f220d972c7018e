"""What a probe's child says to the process that started it: one JSON object a line on its stdout, and how it ends.

    {"tell": "..."} ...    what it is at
    {"found": {...}} ...   facts, as soon as they are known: they count even when the process is killed after them
    {"error": "...", "memory": false}

The first argument is the starter's process id, the second a JSON file that says what to do.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from grpo_studio.errors import StudioError
from grpo_studio.memory.allocation import out_of_memory
from grpo_studio.shown import shown
from grpo_studio.verifiers.lifeline import die_with_parent


class Channel:
    """The stdout of a child, for its messages alone: what libraries print goes to stderr."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)

    def tell(self, what: str) -> None:
        self._send({"tell": what})

    def found(self, facts: Mapping[str, Any]) -> None:
        self._send({"found": dict(facts)})

    def failed(self, error: BaseException) -> None:
        memory = out_of_memory(error) is not None
        self._send({"error": _line(error), "memory": memory})

    def _send(self, message: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(message, ensure_ascii=True, allow_nan=False).encode() + b"\n")


def answer(arguments: list[str], work: Callable[[dict[str, Any], Channel], None]) -> int:
    """Do the work of a child; whatever ends it is told. Returns the exit code."""
    die_with_parent(int(arguments[0]))
    _go_first()
    channel = Channel()
    try:
        work(json.loads(Path(arguments[1]).read_text(encoding="utf-8")), channel)
    except Exception as error:  # the boundary to all libraries: told to who started it
        if not isinstance(error, StudioError):
            traceback.print_exc(file=sys.stderr)
        channel.failed(error)
        return 1
    return 0


def _go_first() -> None:
    """Where memory runs out, the kernel is to end this process and not the one that waits for it."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _line(error: BaseException) -> str:
    if isinstance(error, StudioError):
        return " ".join(str(error).split())
    return f"{type(error).__name__}: {shown(str(error), 300)}"
