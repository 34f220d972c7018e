"""Which versions of what matters to a run are installed here; asked of their metadata, so nothing is imported."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from grpo_studio import __version__

LIBRARIES = ("trl", "transformers", "peft", "torch", "accelerate", "datasets", "vllm", "liger-kernel")


def installed(names: Iterable[str] = LIBRARIES) -> dict[str, str]:
    """Version by package; those that are not installed are left out."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def of_this_process() -> dict[str, str]:
    """What a run records of itself: the libraries, Python, and this program."""
    return {"python": platform.python_version(), "grpo_studio": __version__, **installed()}
