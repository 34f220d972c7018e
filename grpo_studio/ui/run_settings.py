"""Settings as a person types them for a resume or a branch: rows of a name and a text. No gradio here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from grpo_studio.config import RewardSettings, RunConfig
from grpo_studio.config_files import with_overrides
from grpo_studio.declaration import fields_of
from grpo_studio.errors import ConfigError, UsageError
from grpo_studio.resume_rules import KEPT_BY_A_BRANCH, flat, named_by
from grpo_studio.rules import inspect
from grpo_studio.shown import shown
from grpo_studio.ui.launch_command import as_yaml

MOST_ROWS = 60
LONGEST_VALUE = 20_000
_NAME = re.compile(r"[a-z_]+(\.\w+)*", re.ASCII)
_OF_A_REWARD = ("weight", "params")


def overrides_of(request: Mapping[str, Any]) -> list[str]:
    """`name=value` for each row under `set`, a list of [name, text].

    Raises:
        UsageError: a row is not two texts, a name is none, or there are too many.
    """
    rows = request.get("set", [])
    if not isinstance(rows, list) or len(rows) > MOST_ROWS:
        raise UsageError(f"'set' is no list of at most {MOST_ROWS} settings; give rows of a name and a text")
    return [_override(row) for row in rows]


def _override(row: Any) -> str:
    if not isinstance(row, list) or len(row) != 2 or not all(isinstance(part, str) for part in row):
        raise UsageError(f"{shown(row)} is no setting; give a name and a text")
    name, text = row[0].strip(), row[1]
    if not _NAME.fullmatch(name):
        raise UsageError(f"{shown(name)!r} names no setting; choose one from the list, such as algorithm.learning_rate")
    if len(text) > LONGEST_VALUE:
        raise UsageError(f"the value of {name} has {len(text):,} characters; at most {LONGEST_VALUE:,} are taken")
    return f"{name}={text}"


def changed_config(config: RunConfig, overrides: Sequence[str]) -> RunConfig:
    """The settings with the overrides put in.

    Raises:
        ConfigError: one of them has a value that cannot work; all that is wrong is named.
    """
    inspected = inspect(with_overrides(config.model_dump(mode="json"), overrides))
    if inspected.config is None:
        raise ConfigError("; ".join(str(problem) for problem in inspected.problems))
    return inspected.config


def branch_fields(config: RunConfig) -> list[dict[str, str]]:
    """The settings that a branch may change: {"name", "title", "help", "value"}, the value as it is typed."""
    told, values = fields_of(RunConfig), flat(config)
    rows = []
    for name, info in told.items():
        extra = info.json_schema_extra
        waits = isinstance(extra, dict) and "not_yet" in extra
        if not waits and name != "rewards" and name in values and not named_by(KEPT_BY_A_BRANCH, name):
            rows.append(_field(name, info.title, info.description, values[name]))
    for place, reward in enumerate(config.rewards):
        for part in _OF_A_REWARD:
            info, value = RewardSettings.model_fields[part], getattr(reward, part)
            rows.append(_field(f"rewards.{place}.{part}", f"{reward.label}: {info.title}", info.description, value))
    return rows


def _field(name: str, title: str | None, help_text: str | None, value: Any) -> dict[str, str]:
    text = value if isinstance(value, str) else as_yaml(value)
    return {"name": name, "title": title or name, "help": help_text or "", "value": text}
