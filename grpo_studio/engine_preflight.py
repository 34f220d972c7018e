"""What the training engine needs of this machine and of the model, found before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator

from grpo_studio.catalog import locate
from grpo_studio.config import RunConfig
from grpo_studio.devices import current_device, visible_gpus, wrong_server_devices
from grpo_studio.engine_rules import idle_settings
from grpo_studio.errors import ModelError
from grpo_studio.extra_fields import extra_problems
from grpo_studio.extra_rules import extra_rules
from grpo_studio.lora_targets import ALL_LINEAR, target_names, unknown_targets
from grpo_studio.module_names import linear_module_names
from grpo_studio.problem import Problem
from grpo_studio.report_checks import report_problems
from grpo_studio.rollout_checks import engine_problems
from grpo_studio.scale_checks import device_problems
from grpo_studio.settings import Settings


def machine_problems(config: RunConfig, settings: Settings, notes: list[str]) -> Iterator[Problem]:
    """Packages, devices, TRL's fields and module names that a run needs and that are not there; adds to `notes`."""
    kind, gpus = current_device().kind, visible_gpus()
    mistyped = list(extra_problems(config))
    yield from mistyped
    yield from (rule for rule in extra_rules(config) if rule.field not in {problem.field for problem in mistyped})
    yield from report_problems(config)
    yield from device_problems(config, kind, len(gpus))
    if gpus and (wrong := wrong_server_devices(config)):
        yield Problem(
            "rollout.server_devices",
            f"{', '.join(wrong)} is no GPU that this run may use, or named twice (there are {', '.join(gpus)})",
            "name others, or leave it empty",
        )
    yield from engine_problems(config, kind)
    yield from _target_problems(config, settings)
    notes += idle_settings(config)
    if config.memory.adapter == "qlora" and kind == "cpu":
        notes.append("QLoRA works on a CPU, slowly: 4-bit weights are unpacked at each use")
    if config.memory.snapshot and kind == "cpu":
        notes.append("memory.snapshot needs a GPU: none is made on a CPU")
    if config.memory.track_tensors and kind == "cuda":
        notes.append("memory.track_tensors does nothing on a GPU, whose allocator counts by itself")


def _target_problems(config: RunConfig, settings: Settings) -> Iterator[Problem]:
    names = target_names(config.memory.lora_targets)
    if config.memory.adapter == "none" or not names:
        return
    try:
        location = locate(config.model.id, settings.cache)
    except ModelError:
        return  # told of the model already
    if location.path is None or not location.ready:
        return  # the worker looks, before it loads the weights
    known = linear_module_names(location.path)
    if known and (unknown := unknown_targets(names, known)):
        yield Problem(
            "memory.lora_targets",
            f"{config.model.id} has no linear module named {', '.join(unknown)}",
            f"use {ALL_LINEAR}, or some of {', '.join(known)}",
        )
