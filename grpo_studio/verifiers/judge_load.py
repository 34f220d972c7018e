"""Loads files in a process of their own first: one may hang, or end the process that loads it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from grpo_studio.verifiers.judge_lineage import Lineage
from grpo_studio.verifiers.judge_process import MEMORY_LIMIT
from grpo_studio.verifiers.judge_spawn import spawn

_START_LIMIT = 30.0


def first_load(paths: Sequence[Path], limit: float) -> dict[Path, str]:
    """The files that hang for `limit` seconds or end their process, and how. What a file raises shows later."""
    left = list(paths)
    failures: dict[Path, str] = {}
    while left:
        try:
            begun, reason = _attempt(left, limit)
        except OSError as error:
            return failures | dict.fromkeys(left, f"no process can be started to load it in: {error}")
        if reason is None:
            break
        failed = max(begun - 1, 0)
        failures[left[failed]] = f"loading {left[failed].name} {reason}"
        left = left[failed + 1 :]
    return failures


def _attempt(paths: Sequence[Path], limit: float) -> tuple[int, str | None]:
    """How many files were begun with, and how the last of them failed."""
    setup = json.dumps(list(map(str, paths))).encode() + b"\n"
    child = spawn("grpo_studio.verifiers.judge_load_child", [MEMORY_LIMIT])
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        os.set_blocking(child.stdin.fileno(), True)
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(setup)
        begun, deadline = 0, time.monotonic() + _START_LIMIT
        poll = select.poll()
        poll.register(child.stdout, select.POLLIN)
        while begun <= len(paths):
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                return begun, f"takes over {limit:g} s; it may hang"
            told = os.read(child.stdout.fileno(), 1 << 16)
            if not told:
                status = child.wait()
                return begun, f"ends the process ({f'exit status {status}' if status >= 0 else f'signal {-status}'})"
            begun, deadline = begun + len(told), time.monotonic() + limit
        return begun, None
    finally:
        _kill(child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    if child.returncode is None:
        lineage = Lineage()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGSTOP)  # one that is stopped starts no other
            lineage.note(child.pid)
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        lineage.end()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
