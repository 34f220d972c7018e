"""Which verifiers a reward judges with: the one that is named, and those that it calls in turn.

Every part of the app that asks (what to keep, what to check, what runs code) asks here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from grpo_studio.config import RewardSettings
from grpo_studio.verifiers import Registry


def verifiers_used(reward: RewardSettings, registry: Registry) -> list[str]:
    """Their names, the reward's own first; a name that the registry does not have is told, too."""
    return used_with(reward.verifier, reward.params, registry)


def used_by_all(rewards: Iterable[RewardSettings], registry: Registry) -> list[str]:
    """Those of several rewards, each once."""
    return list(dict.fromkeys(name for reward in rewards for name in verifiers_used(reward, registry)))


def used_with(name: str, params: Mapping[str, Any], registry: Registry) -> list[str]:
    """The same of a verifier with these params; the defaults count for those that are not given."""
    found: dict[str, None] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(name, params)]
    while waiting:
        one, given = waiting.pop(0)
        if (one, repr(given)) in seen:
            continue  # a verifier that calls itself by default
        seen.add((one, repr(given)))
        found.setdefault(one)
        spec = registry.specs.get(one)
        waiting += _named_in(given if spec is None else spec.with_defaults(given))
    return list(found)


def files_used(names: Iterable[str], registry: Registry) -> tuple[tuple[str, str], ...]:
    """Path and sha256 of each file that defines them, to tell whether an answer about them still holds.

    Raises:
        OSError: a file cannot be read.
    """
    paths = sorted({registry.specs[name].path for name in names if name in registry.specs})
    return tuple((str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths)


def runs_code(names: Sequence[str], registry: Registry) -> list[str]:
    """Those of the verifiers that execute what stands in a completion."""
    return sorted({name for name in names if name in registry.specs and registry.specs[name].runs_code})


def _named_in(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The verifiers named at any depth by a `verifier`, each with the `params` beside it."""
    if isinstance(value, Mapping):
        if isinstance(value.get("verifier"), str):
            params = value.get("params")
            yield value["verifier"], params if isinstance(params, Mapping) else {}
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _named_in(one)
