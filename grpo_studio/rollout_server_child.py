"""`python -m grpo_studio.rollout_server_child PARENT SCRATCH COMMAND...`: keeps a server no longer than its run.

A vLLM server that is killed leaves its engine, its sockets and its shared memory behind. So it runs below this process:
- the parent thread ends, even by signal 9: the kernel sends SIGTERM here, and all that the server started is ended;
- this process is killed: the kernel kills the server, and its engine stays in the run's session, which is cleared with
  the run.

Linux only in that; elsewhere a server is ended by `RolloutServer.stop` alone.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType

import psutil

from grpo_studio.verifiers.lifeline import die_with_parent

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
SHARED_MEMORY = Path("/dev/shm")
POLL = 0.02
GRACE = 2.0
"""Seconds that what a server leaves has to end by itself: Python's resource tracker clears up after a crash."""
PYTHONS = ("psm_", "sem.mp-")
"""How Python names shared memory and semaphores; others' are none of our business."""


def main(arguments: list[str]) -> int:
    """Run the command to its end and clear away what it leaves; returns its exit status."""
    parent, scratch, *command = arguments
    signal.signal(signal.SIGTERM, _leave)
    _watch(int(parent))
    me = os.getpid()
    try:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=lambda: die_with_parent(me))
        status = server.wait()
        psutil.wait_procs(psutil.Process().children(recursive=True), GRACE)
        return status if status >= 0 else 128 - status
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _clear_away()
        shutil.rmtree(scratch, ignore_errors=True)


def release_shared_memory(processes: Iterable[psutil.Process]) -> None:
    """Take away the names of shared memory that these processes hold: what is mapped stays until the last of them ends.

    Nobody can join it after that.
    """
    held = {inode for process in processes for inode in _mapped(process)}
    for entry in os.scandir(SHARED_MEMORY) if held else ():
        if entry.name.startswith(PYTHONS) and entry.inode() in held:
            with suppress(FileNotFoundError, PermissionError):
                os.unlink(entry.path)


def _mapped(process: psutil.Process) -> set[int]:
    """Inodes of what a process maps of it; a semaphore is mapped under another name than the one it keeps."""
    try:
        maps = Path(f"/proc/{process.pid}/maps").read_text(errors="replace")
    except OSError:
        return set()
    return {int(line.split(maxsplit=5)[4]) for line in maps.splitlines() if f" {SHARED_MEMORY}/" in line}


def _watch(parent: int) -> None:
    """Be told when the parent ends, and be given the server's orphans."""
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the lines above
        sys.exit(1)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _clear_away() -> None:
    """End all that is left below this process; a killed parent's children come to this one, so look again."""
    while family := psutil.Process().children(recursive=True):
        release_shared_memory(family)
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        time.sleep(POLL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
