"""A bound on the processor time of one piece of work, for engines that a text can slow down without end.

It costs the item alone: the judge's own limit would cost its child process as well. Python's `re` and everything
written in Python give way to it; a single long call into C (a power of big integers) does not, and the judge's limit
stands behind it. Only the main thread can be bound, which is where judge processes run verifiers; elsewhere the work
simply runs.
"""

from __future__ import annotations

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_LEAST = 1e-6  # 0 would switch the timer off


class OutOfTime(BaseException):
    """The bound was reached. No `Exception`: code that is bound must not catch it as one of its own failures."""


def can_bound() -> bool:
    """Whether work of this thread can be bound."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def time_bound(seconds: float) -> Iterator[None]:
    """Run the block for at most that much processor time of this process. Raises OutOfTime from within the block."""
    if not can_bound():
        yield
        return
    # The handler stays: without one, a signal that comes late would end the process.
    signal.signal(signal.SIGVTALRM, _raise)
    outer, _ = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    began = _used()
    signal.setitimer(signal.ITIMER_VIRTUAL, min(seconds, outer) if outer else seconds)
    try:
        yield
    finally:
        # What is used here is used of an outer bound as well; one that is used up ends its block at once.
        left = max(outer - (_used() - began), _LEAST) if outer else 0
        signal.setitimer(signal.ITIMER_VIRTUAL, left)


def _used() -> float:
    """What the timer counts: seconds of the processor outside the kernel."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def _raise(number: int, frame: FrameType | None) -> None:
    raise OutOfTime
