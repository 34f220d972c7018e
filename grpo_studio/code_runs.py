"""Which rewards of a run execute code, and how well this machine shuts it in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grpo_studio.verifiers.sandbox import BoxEnded, level

PREFIX = "code_"
"""By their names: the verifiers that execute code in the sandbox."""


@dataclass(frozen=True)
class SandboxNote:
    """The sandbox in one line; `walled` tells whether code is kept from the files and the network."""

    text: str
    walled: bool


def sandbox_note(verifiers: Iterable[str]) -> SandboxNote | None:
    """The level in force, found by trying; None when no verifier executes code."""
    names = sorted({name for name in verifiers if name.startswith(PREFIX)})
    if not names:
        return None
    try:
        found = level()
    except BoxEnded as error:
        return SandboxNote(f"{', '.join(names)} abstains: {error}", walled=False)
    return SandboxNote(f"{', '.join(names)} runs code in a sandbox: {found.detail}", found.name == "bubblewrap")
