"""What a step spends its time on: an exclusive stack of phases."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

OTHER = "other"
"""Time between the named phases: data loading, clipping, logging."""


class PhaseClock:
    """Times phases so that they add up to the wall time: entering one stops the clock of the one around it.

    `at_turn` is called whenever the phase is about to change, while the old one still is the current one.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.at_turn: Callable[[], None] = lambda: None
        self._stack: list[str] = [OTHER]
        self._since = time.perf_counter()

    @property
    def current(self) -> str:
        return self._stack[-1]

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time within to `name`."""
        self.enter(name)
        try:
            yield
        finally:
            self.leave()

    def enter(self, name: str) -> None:
        self.at_turn()
        self._settle()
        self._stack.append(name)

    def leave(self) -> None:
        self.at_turn()
        self._settle()
        if len(self._stack) > 1:
            self._stack.pop()

    def take(self, only: Collection[str] | None = None) -> dict[str, float]:
        """Seconds by phase since they were last taken; with `only` those phases, and the others go on counting."""
        self._settle()
        return {phase: self.seconds.pop(phase) for phase in list(self.seconds) if only is None or phase in only}

    def _settle(self) -> None:
        now = time.perf_counter()
        self.seconds[self.current] = self.seconds.get(self.current, 0.0) + now - self._since
        self._since = now
