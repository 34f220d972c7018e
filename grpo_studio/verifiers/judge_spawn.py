"""Starts child processes that run users' verifiers: no secrets, a group of their own, gone with their parent."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_PIPE_BYTES = 1 << 18
# The last is `FORCE_VARIABLE` of the sandbox: a verifier's code runs at the level that the app says it does.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "GRPO_STUDIO_SANDBOX")
_starter: list[ThreadPoolExecutor] = []
_starter_lock = threading.Lock()


def spawn(module: str, arguments: Sequence[object], keep: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start `python -m module OUR_PID arguments...` with pipes that do not block; `keep` are descriptors to inherit.

    The module calls `die_with_parent` first of all. Raises OSError.
    """
    # PR_SET_PDEATHSIG fires when the *thread* that started the child ends, and a web server's threads come and go:
    # one thread that lives as long as the process starts all children.
    with _starter_lock:
        if not _starter:
            _starter.append(ThreadPoolExecutor(1, thread_name_prefix="judge-starter"))
        starting = _starter[0].submit(_spawn, module, list(map(str, arguments)), keep)
    child = starting.result()
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        if sys.platform == "linux":
            # Room for a whole unit, so that parent and child seldom wait for each other; refused past a user's limit.
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return child


def _spawn(module: str, arguments: list[str], keep: Sequence[int]) -> subprocess.Popen[bytes]:
    # Its own group: a stop signal for the worker's group must not end the judging of the step that is being
    # finished. A kill of the group takes along what a verifier started in it; what left the group is ended by
    # `Lineage`, as far as it can be found, and stays when this process is itself killed.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(os.getpid()), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=_environment(),
        process_group=0,
        pass_fds=keep,
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
