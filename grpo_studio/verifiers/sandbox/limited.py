"""What the verifiers that run code have in common: their params, and the sandbox that is tried out beforehand."""

from __future__ import annotations

import contextlib

from grpo_studio.verifiers.sandbox.box import BoxEnded
from grpo_studio.verifiers.sandbox.command import Limits
from grpo_studio.verifiers.sandbox.level import level


def limit_problem(seconds: float, memory_mb: int) -> str | None:
    """What is wrong with limits within which no Python process can start, or that are none."""
    if not 0 < seconds <= 600:
        return f"seconds is {seconds}; it must be above 0 and at most 600"
    return None if 64 <= memory_mb <= 65536 else f"memory_mb is {memory_mb}; it must be from 64 to 65536"


def limits_of(seconds: float, memory_mb: int) -> Limits:
    """The limits of a sandbox; processor time has some room, since the clock ends it."""
    return Limits(memory=memory_mb << 20, cpu_seconds=int(seconds) + 2)


def try_out() -> None:
    """Find out which sandbox this machine can have; with none, each item abstains with the reason."""
    with contextlib.suppress(BoxEnded):
        level()
