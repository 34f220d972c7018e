"""What a child started and put into a session of its own, where a signal to the child's group does not reach it.

Linux only: elsewhere nothing is found. Nor is a process found that left its group and then lost its parent, be that the
child itself, which died unasked, or another one between the two, as a daemon does. (Were the child to adopt these, it
would collect the zombies of its sandboxes.)
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

_MOST_LOOKS = 20


class Lineage:
    """Processes below a child, each held by a descriptor: its number may be another's by the time it is ended."""

    def __init__(self) -> None:
        self._held: dict[int, int] = {}

    def note(self, root: int) -> bool:
        """Look for more of them below this process; whether there were any."""
        if sys.platform != "linux":
            return False
        new = _below(root) - set(self._held)
        for pid in new:
            with contextlib.suppress(OSError):
                self._held[pid] = os.pidfd_open(pid)
        return not new.isdisjoint(self._held)

    def end(self) -> None:
        """End all that were noted, and what these started in the meantime."""
        for _ in range(_MOST_LOOKS):  # one that is stopped starts no other
            self._signal(signal.SIGSTOP)
            if not sum(self.note(pid) for pid in list(self._held)):
                break
        self._signal(signal.SIGKILL)
        self.forget()

    def forget(self) -> None:
        """Let go of them."""
        while self._held:
            os.close(self._held.popitem()[1])

    def _signal(self, number: int) -> None:
        if sys.platform == "linux":
            for descriptor in self._held.values():
                with contextlib.suppress(OSError):  # it has ended, or is another user's
                    signal.pidfd_send_signal(descriptor, number)


def _below(root: int) -> set[int]:
    """All processes below it but sandboxes: each of these has a guard, which ends it, and tidies up, with its owner."""
    # Not at the top: every child that judges would import it, and most have no sandbox.
    from grpo_studio.verifiers.sandbox.boot import BOOT
    from grpo_studio.verifiers.sandbox.inside.cage import descendants

    found = {pid for pid, _ in descendants(root)}
    for pid in list(found):
        with contextlib.suppress(OSError):
            if BOOT.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found -= {pid, *(below for below, _ in descendants(pid))}
    return found
