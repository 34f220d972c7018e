"""A draft of the launch form, what differs from its preset, and the command line that repeats it. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

import yaml

from grpo_studio.config import RewardSettings, RunConfig
from grpo_studio.config_files import with_overrides
from grpo_studio.declaration import fields_of
from grpo_studio.errors import StudioError


def complete(data: Mapping[str, Any]) -> dict[str, Any]:
    """Raw settings of a preset with every default filled in, so that two drafts compare value by value.

    Unknown keys stay: `check` then names them.
    """
    return _merged(RunConfig().model_dump(mode="json"), data)


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        below = base.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping) and below:
            result[key] = _merged(below, value)
        else:
            result[key] = [_reward(item) for item in value] if key == "rewards" and isinstance(value, list) else value
    return result


def _reward(data: Any) -> Any:
    if not isinstance(data, Mapping):
        return data
    return {**_reward_defaults(), **data}


def _reward_defaults() -> dict[str, Any]:
    return RewardSettings().model_dump(mode="json")


def differences(preset: Mapping[str, Any], draft: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the draft that are not as in the preset, by dotted name; lists and maps of free keys are whole."""
    found: dict[str, Any] = {}
    _compare(complete(preset), complete(draft), "", found)
    return found


def _compare(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str, found: dict[str, Any]) -> None:
    sections = {name.rpartition(".")[0] for name in fields_of(RunConfig)}
    for key, value in now.items():
        name, old = f"{prefix}{key}", before.get(key)
        if name in sections and isinstance(value, Mapping) and isinstance(old, Mapping):
            _compare(old, value, f"{name}.", found)
        elif value != old or isinstance(value, bool) is not isinstance(old, bool):
            found[name] = value


def command_for(preset: str, settings_of_preset: Mapping[str, Any], draft: Mapping[str, Any], name: str | None) -> str:
    """The command line that starts the same run: only what differs from the preset is written out."""
    words = ["python", "-m", "grpo_studio", "train", "--preset", shlex.quote(preset)]
    for field, value in differences(settings_of_preset, draft).items():
        shown = [_short(item) for item in value] if field == "rewards" and isinstance(value, list) else value
        words += ["--set", shlex.quote(f"{field}={_written(field, shown)}")]
    if name:
        words += ["--name", shlex.quote(name)]
    return " ".join(words)


def _written(field: str, value: Any) -> str:
    """The value as `--set` reads it: text stands as it is where the setting is text, else it is YAML."""
    if isinstance(value, str):
        try:
            read: Any = with_overrides({}, [f"{field}={value}"])
        except StudioError:
            return as_yaml(value)
        for part in field.split("."):
            read = read[part]
        if read == value:
            return value
    return as_yaml(value)


def _short(reward: Any) -> Any:
    """A reward without the keys that only repeat a default."""
    if not isinstance(reward, Mapping):
        return reward
    defaults = _reward_defaults()
    return {key: value for key, value in reward.items() if key == "verifier" or defaults.get(key, reward) != value}


def as_yaml(value: Any) -> str:
    """The value on one line, in a form that YAML reads back as the same value."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value if _reads_as(value, value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        text = repr(value)
        return text if _reads_as(text, value) else re.sub(r"^(-?\d+)e", r"\1.0e", text)
    return json.dumps(value, ensure_ascii=False)


def _reads_as(text: str, value: Any) -> bool:
    if not text.strip() or "\n" in text:
        return False
    try:
        return bool(yaml.safe_load(f"value: {text}")["value"] == value)
    except (yaml.YAMLError, ValueError):
        return False
