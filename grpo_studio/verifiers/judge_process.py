"""One judge child as the parent sees it: its pipes, its progress, its end.

Nothing here blocks, whatever the child does, and it works from any thread: no signals, no alarms. `read` and `flush`
are called when `poll` says so.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from grpo_studio.verifiers.judge_lineage import Lineage
from grpo_studio.verifiers.judge_spawn import spawn

MEMORY_LIMIT: Final = 4 * 1024**3
BOARD_BYTES: Final = mmap.PAGESIZE
CURRENT, LAST_WANTED = 0, 1
"""Cells of the board, 8 bytes each: the item that the child is at, and the last one that it need still judge."""
_LONGEST_LINE: Final = 1 << 23


class JudgeDied(Exception):
    """The child ended, or broke the protocol."""


class JudgeProcess:
    """A child that was started. The first document it writes says that it is ready; see `judge_child`."""

    def __init__(self, setup: str) -> None:
        """Start a child and hand it its first line. Raises JudgeDied."""
        self._owner = os.getpid()
        self._lineage = Lineage()
        self._rest: list[bytes] = []
        self._held = 0
        self._unsent = memoryview(b"")
        board = _shared_memory()
        try:
            self._board = mmap.mmap(board, BOARD_BYTES)
            self._cells = memoryview(self._board).cast("Q")
            self._child = spawn("grpo_studio.verifiers.judge_child", (MEMORY_LIMIT, board), keep=[board])
        except OSError as error:
            raise JudgeDied(str(error)) from error
        finally:
            os.close(board)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self.requests, self.answers = self._child.stdin.fileno(), self._child.stdout.fileno()
        try:
            self.send(setup)
        except BaseException:
            self.kill()
            raise

    def send(self, line: str) -> None:
        """Write a line, or as much of it as the pipe takes now. Raises JudgeDied.

        It is ASCII only: lone surrogates, which no UTF-8 can carry, travel as escapes.
        """
        self._unsent = memoryview(bytes(self._unsent) + line.encode("ascii") + b"\n")
        self.flush()

    def flush(self) -> None:
        """Write on. Raises JudgeDied."""
        while self._unsent:
            try:
                self._unsent = self._unsent[os.write(self.requests, self._unsent) :]
            except BlockingIOError:
                return
            except OSError as error:
                raise JudgeDied(f"the judge process ended ({self._end()})") from error

    @property
    def unsent(self) -> bool:
        """Whether `flush` is needed once the pipe can be written to."""
        return bool(self._unsent)

    def read(self) -> list[Any]:
        """The documents that have come in whole. Raises JudgeDied at the end of the pipe."""
        try:
            data = os.read(self.answers, 1 << 18)
        except BlockingIOError:
            return []
        if not data:
            raise JudgeDied(f"the judge process ended ({self._end()})")
        *lines, last = data.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest, self._held = [], 0
        if last:
            self._rest.append(last)
            self._held += len(last)
        if self._held > _LONGEST_LINE:
            raise JudgeDied("the judge process wrote what is not an answer")
        try:
            return [json.loads(line) for line in lines]
        except (ValueError, RecursionError) as error:
            raise JudgeDied("the judge process wrote what is not an answer") from error

    @property
    def current(self) -> int:
        """The item that the child is at, counted from 1 over its life; at set-up, the request it prepares."""
        return self._cells[CURRENT]

    def stop_after(self, item: int) -> None:
        """Let it skip all items past this one; 0 takes the word back."""
        self._cells[LAST_WANTED] = item

    def alive(self) -> bool:
        """Whether the child still runs. It is not reaped here: `kill` needs its group's number to be still its own."""
        try:
            return os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return False

    def ask_to_end(self) -> None:
        """Close its input: a child with nothing to do ends by itself, and ends what it keeps ready in good order."""
        if self.ours and self._child.stdin is not None:
            self._lineage.note(self.pid)
            with contextlib.suppress(OSError):
                self._child.stdin.close()

    def kill(self, grace: float = 0.0) -> None:
        """End the child and what it started; wait for it. In a fork of its parent: let go of it.

        `grace` is how long, in seconds, a child that was asked to end has for it.
        """
        if self.ours:
            until = time.monotonic() + grace
            while self.alive() and time.monotonic() < until:
                time.sleep(0.005)
            self._signal(signal.SIGSTOP)  # one that is stopped starts no other
            self._lineage.note(self.pid)
            self._signal(signal.SIGKILL)
            self._child.wait()
            self._lineage.end()
        self._lineage.forget()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._child.pid

    @property
    def ours(self) -> bool:
        """Whether this process started the child, and not one that it was forked from."""
        return self._owner == os.getpid()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

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


def _shared_memory() -> int:
    """A descriptor of `BOARD_BYTES` zero bytes that a child can map as well."""
    if sys.platform == "linux":
        board = os.memfd_create("judge-board")
    else:
        board, name = tempfile.mkstemp()
        Path(name).unlink()
    os.ftruncate(board, BOARD_BYTES)
    return board
