"""Settings of two runs that differ in one: what is refused, and what to expect of it. Pure."""

from __future__ import annotations

import copy
import re
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from grpo_studio.config import RewardSettings, RunConfig
from grpo_studio.declaration import fields_of
from grpo_studio.errors import UsageError
from grpo_studio.evaluation_passing import labels_of, pass_rule
from grpo_studio.naming import names_in, nearest_names
from grpo_studio.resume_rules import named_by
from grpo_studio.shown import shown, shown_name

OF_A_REWARD = re.compile(r"rewards\.([0-9]{1,3})\.(\w+)((?:\.[^.]+)*)")
MOVES_THE_DATA = (
    "dataset.", "algorithm.seed", "algorithm.prompts_per_step", "algorithm.num_iterations", "scale.processes",
    "scale.machines", "scale.machine_rank",
)  # fmt: skip
"""Settings that decide which prompts a step takes, or what is sampled for them."""
COSTS_ALONE = (
    "memory.loss_backend", "memory.micro_batch", "memory.chunk_size", "memory.gradient_checkpointing",
    "memory.worst_case_step", "memory.track_tensors", "memory.snapshot", "model.attn_implementation", "checkpoint.",
    "limits.", "report.",
)  # fmt: skip
"""Settings that leave the mathematics of a step as it is."""
LONGEST_VALUE = 60


def require_setting(field: str, data: Mapping[str, Any]) -> None:
    """See that a name is one setting of these raw settings.

    Raises:
        UsageError: it is none, or a whole section.
    """
    known = fields_of(RunConfig)
    maps = [name for name, info in known.items() if _is_map(info.annotation)]
    if field in known or (all(field.split(".")) and any(field.startswith(f"{name}.") for name in maps)):
        return
    if found := OF_A_REWARD.fullmatch(field):
        number, key, below = found.groups()
        count = len(_rewards(data))
        if int(number) >= count:
            raise UsageError(f"there is no reward {number}: {count} are set, from 0 to {count - 1}; name one of these")
        if key in RewardSettings.model_fields and (not below or key == "params"):
            return
        known_keys = nearest_names(key, RewardSettings.model_fields)
        raise UsageError(f"unknown setting {shown_name(field, 80)}; {known_keys}")
    below_it = [name for name in known if name.startswith(f"{field}.")]
    if below_it:
        raise UsageError(f"{shown(field)} is a section; name one setting in it, such as {below_it[0]}")
    raise UsageError(f"unknown setting {shown_name(field, 80)}; {nearest_names(field, known)}")


def refuse_other_uses(field: str, overrides: Sequence[str]) -> None:
    """Raises UsageError when `--set` names the setting that is to differ, or a part of it."""
    for override in overrides:
        name = override.partition("=")[0].strip()
        if name == field or name.startswith(f"{field}."):
            raise UsageError(
                f"{shown_name(field, 80)} is to differ, and --set gives {shown_name(name, 80)} one value; leave that "
                "--set out"
            )


def with_value(data: Mapping[str, Any], field: str, value: Any) -> dict[str, Any]:
    """A copy of raw settings with one setting, which `require_setting` knows, put in.

    Where there is no place for it, because what should hold it is something else, they stay wrong as they are.
    """
    result: dict[str, Any] = copy.deepcopy(dict(data))
    if OF_A_REWARD.fullmatch(field) and isinstance(result.get("rewards"), tuple | None):
        result["rewards"] = copy.deepcopy(_rewards(data))
    *path, last = field.split(".")
    target: Any = result
    for part in path:
        if isinstance(target, dict):
            if target.get(part) is None:
                target[part] = {}
            target = target[part]
        else:
            inside = isinstance(target, list) and part.isdecimal() and int(part) < len(target)
            target = target[int(part)] if inside else None
    if isinstance(target, dict):
        target[last] = copy.deepcopy(value)
    return result


def equal_in_effect(field: str, a: RunConfig, b: RunConfig) -> str | None:
    """What both settings come to, when there is no difference between them; else None."""
    one, other = _comes_to(field, a), _comes_to(field, b)
    if a == b or (one is not None and one == other):
        return value_text(value_of(a, field) if one is None else one)
    return None


def notes_on(field: str, a: RunConfig, b: RunConfig) -> list[str]:
    """What a person should expect of the comparison."""
    notes = []
    if why := _has_no_effect(field, a):
        notes.append(f"{shown_name(field, 80)} does nothing here: {why}; the two will be the same run twice")
    elif named_by(MOVES_THE_DATA, field):
        notes.append(
            f"{shown_name(field, 80)} changes which prompts a step takes or what is sampled for them, so a step's "
            "rewards are not of the same prompts: compare the curves, not the steps"
        )
    elif named_by(COSTS_ALONE, field) or _skips_alike(field, a, b):
        notes.append(
            f"{shown_name(field, 80)} changes memory and time alone: rewards stay equal until rounding flips a first "
            "token, and go their own ways from there"
        )
    return notes


def value_of(config: RunConfig, field: str) -> Any:
    """A setting's value as plain data; None also for a free key that is not set."""
    value: Any = config.model_dump(mode="json")
    for part in field.split("."):
        if isinstance(value, list):
            value = value[int(part)] if part.isdecimal() and int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, dict) else None
    return value


def value_text(value: Any) -> str:
    """A value as a person wrote it, on one short line; `empty` for none."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    return shown(value, LONGEST_VALUE)


def _rewards(data: Mapping[str, Any]) -> list[Any]:
    given = data.get("rewards")
    return list(given) if isinstance(given, list | tuple) else RunConfig().model_dump(mode="json")["rewards"]


def _is_map(annotation: Any) -> bool:
    return typing.get_origin(annotation) is dict


def _comes_to(field: str, config: RunConfig) -> Any:
    """What a setting means once what is empty is derived; None where that is not known before the run."""
    if found := OF_A_REWARD.fullmatch(field):
        return config.rewards[int(found[1])].label if found[2] == "name" else None
    match field:
        case "memory.micro_batch":
            return config.effective_micro_batch()
        case "memory.skip_dead_groups":
            return config.effective_skip_dead_groups()
        case "memory.lora_targets":
            return ", ".join(sorted(names_in(config.memory.lora_targets)))
        case "algorithm.epsilon_high":
            return config.effective_epsilon_high()
        case "rollout.importance_sampling_mode":
            return config.effective_importance_sampling_mode()
        case "evaluation.passed_by" if config.evaluation.passed_by in (None, *labels_of(config)):
            return pass_rule(config).reward
    return None


def _has_no_effect(field: str, config: RunConfig) -> str | None:
    if field.startswith("memory.lora_") and config.memory.adapter == "none":
        return "memory.adapter is none"
    if field == "memory.chunk_size" and config.memory.loss_backend != "liger":
        return f"memory.loss_backend is {config.memory.loss_backend}"
    if field.startswith("rollout.") and field != "rollout.engine" and not config.uses_vllm:
        return "rollout.engine is transformers"
    return None


def _skips_alike(field: str, a: RunConfig, b: RunConfig) -> bool:
    return field == "memory.skip_dead_groups" and a.skipping_changes() is None and b.skipping_changes() is None


def title_of(field: str) -> str:
    """What the form calls a setting."""
    if found := OF_A_REWARD.fullmatch(field):
        info = RewardSettings.model_fields.get(found[2])
        return f"Reward {int(found[1]) + 1}: {info.title if info else found[2]}{found[3]}"
    info = fields_of(RunConfig).get(field)
    return (info.title if info else None) or shown_name(field, 80)
