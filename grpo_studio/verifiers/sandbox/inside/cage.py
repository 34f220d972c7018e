"""The sandbox without namespaces: a guard that outlives the foreign code, ends all that it started, and tidies up.

The guard is the subreaper of everything below it: a process that detaches itself (setsid, two forks) becomes its child,
so none can be lost. It acts when the code ends and when the pipe from its owner closes, as it does when the owner dies.
"""

from __future__ import annotations

import os
import select
import sys
import time

from grpo_studio.verifiers.sandbox.inside import confine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

# By number: the module `signal` takes half as long to import as the interpreter to start.
_STOP, _KILL = (19 if sys.platform.startswith("linux") else 17), 9
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36


def guard(control: int, settings: Mapping[str, Any], code: Callable[[list[str]], None]) -> None:
    """Run `code` in a confined child of its own session; returns in the guard, when nothing of it is left."""
    if sys.platform.startswith("linux"):
        import ctypes

        prctl = ctypes.CDLL(None).prctl
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if child == 0:
        os.setsid()
        if settings["user"] is not None:
            confine.become(settings["user"])
        if sys.platform.startswith("linux"):
            prctl(_PR_SET_PDEATHSIG, _KILL, 0, 0, 0)  # the machine may kill the guard when it is out of memory
        confine.limit(settings)
        code(confine.shut(settings["readable"], [settings["folder"]]))
        os._exit(0)
    if sys.platform.startswith("linux"):
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # its memory and environment are not for processes of the same user
    for channel in range(3, 64):
        if channel != control:
            _close(channel)
    _wait(child, control)
    end_all(child)
    _remove(settings["folder"])


def _close(channel: int) -> None:
    try:
        os.close(channel)
    except OSError:
        return


def _wait(child: int, control: int) -> None:
    poll = select.poll()
    poll.register(control, 0)  # only its end is of interest: what comes through is for the code
    while not poll.poll(20):
        try:
            found, _ = os.waitpid(-1, os.WNOHANG)
            while found not in (0, child):
                found, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if found == child:
            return


def end_all(first: int) -> None:
    """Kill every descendant, over and over until none is left, and reap them."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = [pid for pid, _ in descendants(os.getpid())] or [first]
        for number in (_STOP, _KILL):  # one that is stopped cannot fork while others are killed
            for pid in found:
                try:
                    os.kill(pid, number)
                except OSError:
                    continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        time.sleep(0.002)


def descendants(root: int) -> Iterator[tuple[int, int]]:
    """Each process below `root`, with its resident pages. Empty where there is no /proc."""
    children: dict[int, list[tuple[int, int]]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append((int(name), int(fields[21])))
    waiting = [root]
    while waiting:
        for pid, pages in children.pop(waiting.pop(), []):
            waiting.append(pid)
            yield pid, pages


def _remove(folder: str) -> None:
    try:
        os.chmod(folder, 0o700)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    _remove(entry.path)
                else:
                    os.unlink(entry.path)
        os.rmdir(folder)
    except OSError:
        return
