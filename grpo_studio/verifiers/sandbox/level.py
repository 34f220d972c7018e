"""Which kind of sandbox this machine can have, found by making one."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import cache
from typing import Literal

from grpo_studio.verifiers.sandbox import places
from grpo_studio.verifiers.sandbox.box import Box, BoxEnded, BoxOverLimit, BoxTimeout
from grpo_studio.verifiers.sandbox.command import Limits, Way

LevelName = Literal["bubblewrap", "limits"]
FORCE_VARIABLE = "GRPO_STUDIO_SANDBOX"
"""Set to `limits` to do without bubblewrap where it works."""


@dataclass(frozen=True)
class SandboxLevel:
    """The kind in force, and in one line what it does or why it is not the better one."""

    name: LevelName
    detail: str


def level(force: LevelName | None = None) -> SandboxLevel:
    """The level in force on this machine, tried out once per process. Raises BoxEnded when none can be made at all."""
    return _found(force or _forced())[0]


def way(force: LevelName | None = None) -> Way:
    """How to make a sandbox of that level. Raises BoxEnded when none can be made at all."""
    return _found(force or _forced())[1]


def _forced() -> LevelName | None:
    return "limits" if os.environ.get(FORCE_VARIABLE) == "limits" else None


@cache
def _found(force: LevelName | None) -> tuple[SandboxLevel, Way]:
    root = places.unprivileged_user(0) is not None
    reasons = []
    if force == "limits":
        reasons.append("bubblewrap is switched off")
    else:
        programs = places.bwrap_programs()
        if not programs:
            reasons.append("there is no bwrap program")
        for program in programs:
            made = Way(program, root)
            problem, _ = _try(made)
            if problem is None:
                detail = "bubblewrap: own namespaces, no network, no files but Python's own, a private /tmp"
                return SandboxLevel("bubblewrap", detail), made
            reasons.append(f"bubblewrap does not work here: {problem}")
    made, measures = Way(None, root), ""
    problem, measures = _try(made)
    if problem is not None and root:
        # A Python below root's home is out of reach for any other user.
        made = Way(None, False)
        problem, measures = _try(made)
    if problem is not None:
        raise BoxEnded(f"no sandbox can be made here: {problem}")
    kept = "; ".join(_kept(root, made.drop_root, measures))
    return SandboxLevel("limits", f"{'; '.join(reasons)[:400]}; instead: {kept}"), made


def _kept(root: bool, drop_root: bool, measures: str) -> list[str]:
    """What there is without namespaces, and what it leaves open."""
    kept = ["resource limits, a process group of its own"]
    if root:
        kept.append("another user" if drop_root else "root without its capabilities")
    kept.append(measures or "this is no wall: files and the network stay within reach")
    if not root and "Landlock" not in measures:
        kept.append(
            "code can read the files and the environment of all processes of this user, the trainer's keys and tokens "
            "among them (/proc/PID/environ)"
        )
    return kept


def _try(made: Way) -> tuple[str | None, str]:
    """What does not work with it (None: all does), and what a sandbox without namespaces could still do."""
    try:
        with Box(made, "probe", Limits()) as box:
            problem = box.receive(time.monotonic() + 10).decode()
            return problem or None, box.measures
    except (BoxEnded, BoxOverLimit, OSError) as error:
        return str(error) or type(error).__name__, ""
    except BoxTimeout:
        return "it does not start in time", ""
