"""What the training engine needs of this machine and of the model, found before anything is loaded."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Iterator

from grpo_studio.catalog import locate
from grpo_studio.config import RunConfig
from grpo_studio.devices import current_device, visible_gpus
from grpo_studio.errors import ModelError
from grpo_studio.extra_fields import extra_problems
from grpo_studio.lora_targets import ALL_LINEAR, target_names
from grpo_studio.problem import Problem
from grpo_studio.report_checks import report_problems
from grpo_studio.rollout_checks import engine_problems
from grpo_studio.scale_checks import device_problems
from grpo_studio.settings import PACKAGE_DIR, Settings

READ_WITHIN = 120.0
"""Seconds that reading a model's module names may take: it loads the libraries, no weights."""


def machine_problems(config: RunConfig, settings: Settings, notes: list[str]) -> Iterator[Problem]:
    """Packages, devices, TRL's fields and module names that a run needs and that are not there; adds to `notes`."""
    kind = current_device().kind
    yield from extra_problems(config)
    yield from report_problems(config)
    yield from device_problems(config, kind, len(visible_gpus()))
    yield from engine_problems(config, kind)
    yield from _target_problems(config, settings)
    if config.memory.adapter == "qlora" and kind == "cpu":
        notes.append("QLoRA works on a CPU, slowly: 4-bit weights are unpacked at each use")


def _target_problems(config: RunConfig, settings: Settings) -> Iterator[Problem]:
    names = target_names(config.memory.lora_targets)
    if config.memory.adapter == "none" or not names:
        return
    try:
        location = locate(config.model.id, settings.cache)
    except ModelError:
        return  # told of the model already
    if not location.ready:
        return
    known = module_names(str(location.path or location.id), config.model.revision)
    unknown = [name for name in names if known and name not in known]
    if unknown:
        yield Problem(
            "memory.lora_targets",
            f"{config.model.id} has no linear module named {', '.join(unknown)}",
            f"use {ALL_LINEAR}, or some of {', '.join(known)}",
        )


@functools.lru_cache(maxsize=32)
def module_names(source: str, revision: str | None) -> tuple[str, ...]:
    """Names of a model's linear modules, read in a process of its own; empty when they cannot be read."""
    command = [sys.executable, "-m", "grpo_studio.training.module_names", source, *([revision] if revision else [])]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=READ_WITHIN, cwd=PACKAGE_DIR.parent, check=True
        )
        return tuple(json.loads(answer.stdout.splitlines()[-1]))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return ()
