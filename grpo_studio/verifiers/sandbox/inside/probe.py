"""Tries out, from inside, what a sandbox promises; what fails decides which kind of sandbox this machine can have."""

from __future__ import annotations

import os

from grpo_studio.verifiers.sandbox.inside import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def main(source: int, sink: int, settings: Mapping[str, Any]) -> None:
    """Answer with what does not work; empty when all does."""
    try:
        import fractions  # noqa: F401  (the library must be readable for whoever the code runs as)

        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        path = os.path.join(settings["folder"], "probe")
        with open(path, "w") as file:
            file.write("x")
        os.unlink(path)
        problem = _namespaces() if settings["bubblewrap"] else ""
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    wire.send(sink, problem.encode())


def _namespaces() -> str:
    with open("/proc/net/dev") as file:
        devices = [line.partition(":")[0].strip() for line in file if ":" in line]
    if devices != ["lo"]:
        return f"the network is visible: {', '.join(devices)}"
    if len([name for name in os.listdir("/proc") if name.isdigit()]) > 4:
        return "other processes are visible"
    try:
        os.mkdir("/usr/probe")
    except OSError:
        return ""
    return "the system is writable"
