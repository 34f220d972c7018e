"""Faults that a test asks a worker to have, by its environment: loaded by any Python that has this folder on its path.

FAULT=kill:PHASE     SIGKILL to itself in the second step as that phase begins; `staging`: while a checkpoint is written
FAULT=linger         a thread and a child that never end, from the start of training on
FAULT=hunger         an allocation in the second step that its address space, limited to what it has, does not hold
FAULT=chatter:BYTES  so many bytes of log in the first step
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

FAULT, _, DETAIL = os.environ.get("FAULT", "").partition(":")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_in_phase(phases: ModuleType) -> None:
    enter, entered = phases.PhaseClock.enter, 0

    def entering(self: Any, name: str) -> None:
        nonlocal entered
        enter(self, name)
        entered += name == DETAIL
        if entered == 2:
            die()

    phases.PhaseClock.enter = entering


def kill_while_staging(module: ModuleType) -> None:
    module.write_manifest = lambda *arguments, **more: die()


def go_hungry(phases: ModuleType) -> None:
    import resource

    import torch

    enter, entered = phases.PhaseClock.enter, 0

    def entering(self: Any, name: str) -> None:
        nonlocal entered
        enter(self, name)
        entered += name == "loss"
        if entered == 2:
            with open("/proc/self/statm") as pages:
                used = int(pages.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, used + 2**26))
            torch.ones(2**28)

    phases.PhaseClock.enter = entering


def linger(phases: ModuleType) -> None:
    subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(1000)"], env={})
    threading.Thread(target=time.sleep, args=(1000,)).start()


def chatter(phases: ModuleType) -> None:
    def talk() -> None:
        for _ in range(int(DETAIL) // 1_000_000):
            os.write(1, b"a line that says nothing new\n" * 34_482)

    threading.Thread(target=talk).start()


class Patching(importlib.abc.MetaPathFinder):
    """Runs `patch` on a module right after it was loaded."""

    def __init__(self, name: str, patch: Callable[[ModuleType], None]) -> None:
        self._name, self._patch = name, patch

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if name != self._name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            self._patch(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if FAULT and any(argument == "grpo_studio.worker" for argument in sys.orig_argv):
    if FAULT == "kill" and DETAIL == "staging":
        sys.meta_path.insert(0, Patching("grpo_studio.checkpoints", kill_while_staging))
    else:
        patches = {"kill": kill_in_phase, "linger": linger, "hunger": go_hungry, "chatter": chatter}
        sys.meta_path.insert(0, Patching("grpo_studio.training.phases", patches[FAULT]))
