"""Limits that a child process sets on itself, so that it neither outlives its parent nor takes the machine with it.

Linux only in its first part: elsewhere `die_with_parent` does nothing, and the end of its pipe ends an idle child.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Be killed when the process `parent` ends, even by signal 9; end now when it already has.

    The kernel watches the *thread* that started this process: start it from a thread that lives as long as the
    process does (`judge_spawn.py` keeps one for this).
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have died before the line above; then nobody would ever send the signal.
    if os.getppid() != parent:
        os._exit(1)


def limit_memory(limit: int) -> None:
    """At most `limit` bytes of address space, and no core file."""
    for what, value in ((resource.RLIMIT_AS, limit), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(what)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (value, value))
