"""Which settings a resumed run may change, which a branch may, and how two sets of settings differ. Pure.

The settings that were are read from a checkpoint's manifest, so they may be another version's, or anything at all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.shown import shown, shown_name

FREE = (
    "limits.",
    "checkpoint.",
    "alerts",
    "report.",
    "evaluation.every",
    "rollout.server_url",
    "rollout.server_timeout",
    "memory.worst_case_step",
    "memory.track_tensors",
    "memory.snapshot",
)
"""Settings that change no step of a run, so that one can go on with others. Names that end in a dot are sections."""
KEPT_BY_A_BRANCH = (
    "model.", "memory.adapter", "memory.lora_rank", "memory.lora_alpha", "memory.lora_targets", "algorithm.optimizer",
    "scale.processes", "scale.machines", "scale.strategy",
)  # fmt: skip
"""Settings that weights and optimizer were made with: no branch can change them."""
NAMED = 3
"""How many of the settings that differ a message names."""


@dataclass(frozen=True)
class Change:
    """One setting that differs, by its dotted name."""

    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{shown_name(self.field, 80)} {_short(self.before)} -> {_short(self.after)}"


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


def refusal(before_settings: Mapping[str, Any], config: RunConfig) -> str | None:
    """Why a run cannot go on with these settings from a checkpoint that was saved with those; None when it can."""
    if differ := _differences(before_settings, config):
        return (
            f"settings that matter differ from those that the checkpoint was saved with: {_named(differ)}; put them "
            "back, or begin a new run with them from this checkpoint: branch RUN --step K"
        )
    return None


def refusal_of_branch(before_settings: Mapping[str, Any], config: RunConfig) -> str | None:
    """Why no branch with these settings can begin from a checkpoint that was saved with those; None when it can."""
    if differ := [one for one in _differences(before_settings, config) if named_by(KEPT_BY_A_BRANCH, one.field)]:
        return (
            f"a branch keeps the model, the adapter, the optimizer and the processes of its checkpoint, and these "
            f"differ: {_named(differ)}; leave them as they were, or start a new run"
        )
    return None


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


def _differences(before: Mapping[str, Any], config: RunConfig) -> list[Change]:
    """Changes of settings that matter. What another version had no name for counts as its default."""
    known, defaults = settings_that_matter(config), settings_that_matter(RunConfig())
    absent = {name: value for name, value in defaults.items() if name not in before}
    was = {name: value for name, value in before.items() if not named_by(FREE, name)}
    return [one for one in changes(absent | was, known) if one.field in known or one.before is not None]


def _named(differ: Sequence[Change]) -> str:
    more = f" and {len(differ) - NAMED} more" if len(differ) > NAMED else ""
    return ", ".join(str(one) for one in differ[:NAMED]) + more


def _short(value: Any) -> str:
    return "empty" if value is None else shown(value)
