"""A worker whose address space is limited once its model is wrapped: ROOM=BYTES is what it may still take.

Loaded by any Python that has this folder on its path; only a worker of a run is limited, the children that it starts
from then on have the same limit.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from types import ModuleType
from typing import Any

ROOM = int(os.environ.get("ROOM", "0"))
MODULE = "grpo_studio.training.setup_facts"


def limit_after(module: ModuleType) -> None:
    import resource

    tell = module.tell_setup

    def tell_setup(*arguments: Any) -> None:
        tell(*arguments)
        with open("/proc/self/statm") as pages:
            used = int(pages.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))

    module.tell_setup = tell_setup


class Patching(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        if name != MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            limit_after(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if ROOM and any(argument == "grpo_studio.worker" for argument in sys.orig_argv):
    sys.meta_path.insert(0, Patching())
