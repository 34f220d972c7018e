"""How a stop request reaches the trainer, and how an attempt says that it ended. No torch, so that it loads at once."""

from __future__ import annotations

from dataclasses import dataclass


class PausedEarlyError(Exception):
    """Training would be in vain before it has begun; the message says why, and what to do."""


class StoppedEarlyError(BaseException):
    """SIGTERM came before training began: there is no step to finish."""


@dataclass
class StopFlag:
    """Set by the worker's signal handler; the trainer looks at it after each step.

    `reason` is why the trainer stopped by itself; empty when it was asked to.
    """

    requested: bool = False
    training: bool = False
    reason: str = ""

    def request(self) -> None:
        """Ask for a stop; asking again changes nothing.

        Raises:
            StoppedEarlyError: training has not begun.
        """
        if self.requested:
            return
        self.requested = True
        if not self.training:
            raise StoppedEarlyError


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended: all steps done, stopped (on request, or for `reason`), or paused for what `paused` says."""

    step: int
    stopped: bool = False
    paused: str | None = None
    reason: str = ""
