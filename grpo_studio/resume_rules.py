"""Which settings a resumed run may change, which a branch may, and how two sets of settings differ. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grpo_studio.config import RunConfig

FREE = (
    "limits.",
    "checkpoint.",
    "alerts",
    "report.",
    "evaluation.every",
    "rollout.server_url",
    "rollout.server_timeout",
)
"""Settings that change no step of a run, so that one can go on with others. Names that end in a dot are sections."""
KEPT_BY_A_BRANCH = (
    "model.", "memory.adapter", "memory.lora_rank", "memory.lora_alpha", "memory.lora_targets", "algorithm.optimizer",
    "scale.processes", "scale.machines", "scale.strategy",
)  # fmt: skip
"""Settings that weights and optimizer were made with: no branch can change them."""


@dataclass(frozen=True)
class Change:
    """One setting that differs, by its dotted name."""

    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.field} {_short(self.before)} -> {_short(self.after)}"


def flat(config: RunConfig) -> dict[str, Any]:
    """Every setting by its dotted name, as plain values for JSON; lists and maps are one value."""
    return _flattened(config.model_dump(mode="json"), "")


def settings_that_matter(config: RunConfig) -> dict[str, Any]:
    """Those that decide what a step does."""
    return {name: value for name, value in flat(config).items() if not named_by(FREE, name)}


def config_hash(config: RunConfig) -> str:
    """SHA-256 of the settings that matter: equal hashes, equal steps."""
    text = json.dumps(settings_that_matter(config), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What differs between two flat sets of settings; one that only one of them has is None in the other."""
    names = list(dict.fromkeys([*before, *after]))
    return [Change(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)]


def named_by(names: tuple[str, ...], field: str) -> bool:
    """Whether a setting is one of those names, or lies in one of those sections."""
    return any(field == name or (name.endswith(".") and field.startswith(name)) for name in names)


def _flattened(value: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, item in value.items():
        if (isinstance(item, dict) and prefix == "") or (isinstance(item, dict) and name == "columns"):
            found |= _flattened(item, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = item
    return found


def _short(value: Any) -> str:
    text = "empty" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}\u2026"
