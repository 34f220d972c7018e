"""One judge child and its pipes, as the parent sees them: start, send a batch, read answers by a deadline, kill.

Nothing here blocks without a limit, whatever the child does, and it works from any thread: no signals, no alarms.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

MEMORY_LIMIT = 4 * 1024**3
START_LIMIT = 60.0  # the imports of slow verifiers (sympy) on a busy machine
_LONGEST_LINE = 1 << 20
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")
_starter: list[ThreadPoolExecutor] = []
_starter_lock = threading.Lock()


class JudgeDied(Exception):
    """The child ended, or broke the protocol, before it answered."""


class JudgeTimeout(Exception):
    """The child did not answer in time."""


class JudgeProcess:
    """A started child; `problems` holds, for each request, why it cannot be judged (or None)."""

    def __init__(self, setup: str) -> None:
        """Start a child and hand it its first line (see `judge_child`). Raises JudgeDied or JudgeTimeout."""
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self._child = _start()
        try:
            self.send(setup, START_LIMIT)
            self.problems: list[str | None] = list(self.receive(START_LIMIT)["problems"])
        except BaseException:
            self.kill()
            raise

    def send(self, document: str, limit: float) -> None:
        """Write one line of JSON. The child reads a whole line before it answers, so this cannot deadlock.

        It is ASCII only: lone surrogates, which no UTF-8 can carry, travel as escapes.
        """
        assert self._child.stdin is not None
        channel, deadline = self._child.stdin.fileno(), time.monotonic() + limit
        data = memoryview(document.encode("ascii") + b"\n")
        while data:
            self._wait(channel, select.POLLOUT, deadline)
            try:
                data = data[os.write(channel, data) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise JudgeDied("the judge process ended") from error

    def receive(self, limit: float) -> dict[str, Any]:
        """The next answer, within `limit` seconds."""
        assert self._child.stdout is not None
        channel, deadline = self._child.stdout.fileno(), time.monotonic() + limit
        while not self._lines:
            self._wait(channel, select.POLLIN, deadline)
            data = os.read(channel, 1 << 16)
            if not data or len(self._rest) > _LONGEST_LINE:
                raise JudgeDied(f"the judge process ended ({self._end()})")
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines.extend(lines)
        try:
            answer = json.loads(self._lines.popleft())
        except ValueError as error:
            raise JudgeDied("the judge process wrote what is not an answer") from error
        if not isinstance(answer, dict):
            raise JudgeDied("the judge process wrote what is not an answer")
        return answer

    def alive(self) -> bool:
        """Whether the child still runs. It is not reaped here: `kill` needs its group's number to be still its own."""
        try:
            return os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return False

    def kill(self) -> None:
        """End the child and what it started in its group; wait for it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._child.wait()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._child.pid

    def _wait(self, channel: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(channel, event)
        # Polled once even past the deadline: a parent that was held up itself must not blame the child.
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise JudgeTimeout

    def _end(self) -> str:
        with contextlib.suppress(ChildProcessError):
            # The pipe closes a moment before the process is a zombie.
            for _ in range(100):
                status = os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if status is not None:
                    exited = status.si_code == os.CLD_EXITED
                    return f"exit status {status.si_status}" if exited else f"signal {status.si_status}"
                time.sleep(0.005)
        return "it closed its pipe"


def _start() -> subprocess.Popen[bytes]:
    # PR_SET_PDEATHSIG fires when the *thread* that started the child ends, and a web server's threads come and go:
    # one thread that lives as long as the process starts all children.
    with _starter_lock:
        if not _starter:
            _starter.append(ThreadPoolExecutor(1, thread_name_prefix="judge-starter"))
        starting = _starter[0].submit(_spawn)
    child = starting.result()
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
    return child


def _spawn() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "grpo_studio.verifiers.judge_child", str(os.getpid()), str(MEMORY_LIMIT)]
    # Its own group: a stop signal for the worker's group must not end the judging of the step that is being
    # finished, and a kill here takes along what a verifier started.
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=_environment(),
        process_group=0,
    )


def _environment() -> dict[str, str]:
    """What a child needs to import this package, and nothing that could be a secret."""
    root = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH")
    return {
        **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        "PYTHONPATH": os.pathsep.join([root, inherited] if inherited else [root]),
        "LANG": "C.UTF-8",
        # Thread pools of numeric libraries reserve address space by the core, which the memory limit counts.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _forget_starter() -> None:
    global _starter_lock
    _starter.clear()
    _starter_lock = threading.Lock()


# After a fork the starter's thread does not exist in the child; it starts its own.
os.register_at_fork(after_in_child=_forget_starter)
