"""How well this machine shuts in the code that verifiers run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grpo_studio.verifiers.sandbox import BoxEnded, level


@dataclass(frozen=True)
class SandboxInForce:
    """Its `level` ("none" when no sandbox can be made), what it does in one line, and whether it is a wall.

    `walled`: code is kept from the files and the network by namespaces of its own.
    """

    level: str
    walled: bool
    detail: str

    def told(self, verifiers: Sequence[str]) -> str:
        """The line about these verifiers, which run code."""
        names = ", ".join(verifiers)
        if self.level == "none":
            return f"{names} abstains: {self.detail}"
        return f"{names} runs code in a sandbox: {self.detail}"


def sandbox_in_force() -> SandboxInForce:
    """Found by trying, once in a process."""
    try:
        found = level()
    except BoxEnded as error:
        return SandboxInForce("none", False, str(error))
    return SandboxInForce(found.name, found.name == "bubblewrap", found.detail)
