"""What the Verifiers page's requests hold, read with their bounds: all of it comes from a browser and is hostile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from grpo_studio.config import RewardSettings, RunConfig
from grpo_studio.errors import ConfigError, UsageError
from grpo_studio.rules import inspect
from grpo_studio.ui.launch_command import complete

LONGEST_TEXT = 200_000
LARGEST_VALUES = 200_000
MOST_REWARDS = 20
_SECTIONS = ("model", "dataset", "rewards", "algorithm")


def key_of(request: Mapping[str, Any]) -> str:
    """The key that names a job. Raises UsageError when it is none."""
    key = request.get("key")
    if not isinstance(key, str) or not 8 <= len(key) <= 64:
        raise UsageError("the request names no job: give one under 'key', a text of 8 to 64 characters")
    return key


def name_of(request: Mapping[str, Any], key: str, what: str) -> str:
    """A short text of the request. Raises UsageError, with what to give, when there is none."""
    name = request.get(key)
    if not isinstance(name, str) or not 0 < len(name.strip()) <= 200:
        raise UsageError(f"choose {what}")
    return name.strip()


def number_of(request: Mapping[str, Any], key: str, most: int) -> int:
    """A whole number from 1 to `most`. Raises UsageError."""
    number = request.get(key)
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        raise UsageError(f"{key} is {str(number)[:40]!r}; give a whole number from 1 to {most}")
    return number


def completion_of(request: Mapping[str, Any]) -> str:
    """The text to be judged. Raises UsageError when it is none or too long."""
    text = request.get("completion")
    if not isinstance(text, str):
        raise UsageError("the request has no completion; give a text under 'completion'")
    if len(text) > LONGEST_TEXT:
        raise UsageError(f"the completion has {len(text):,} characters; at most {LONGEST_TEXT:,} are judged here")
    return text


def values_of(request: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A mapping of names to plain data: the columns or the params. Raises UsageError."""
    values = request.get(key)
    if not isinstance(values, Mapping):
        raise UsageError(f"the request has no {key}; give a mapping of names to values under {key!r}")
    try:
        size = len(json.dumps(values))
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"the {key} are no plain data: {error}") from error
    if size > LARGEST_VALUES:
        raise UsageError(f"the {key} have {size:,} characters; at most {LARGEST_VALUES:,} are taken")
    return {str(name): value for name, value in values.items()}


def reward_of(verifier: str, params: Mapping[str, Any]) -> RewardSettings:
    """One reward of weight 1. Raises ConfigError when the name or the params are wrong in kind."""
    config = _valid({"rewards": [{"verifier": verifier, "params": dict(params)}]})
    return config.rewards[0]


def draft_of(request: Mapping[str, Any]) -> RunConfig:
    """The settings of a bench: `data` holds the sections model, dataset, rewards and algorithm of a run.

    Raises:
        ConfigError: one of them has a value that cannot work; all that is wrong is named.
    """
    draft = values_of(request, "data")
    rewards = draft.get("rewards")
    if not isinstance(rewards, list) or not 0 < len(rewards) <= MOST_REWARDS:
        raise UsageError(f"choose 1 to {MOST_REWARDS} verifiers")
    return _valid(complete({name: draft[name] for name in _SECTIONS if name in draft}))


def _valid(data: Mapping[str, Any]) -> RunConfig:
    inspected = inspect(data)
    if inspected.config is None:
        raise ConfigError("; ".join(str(problem) for problem in inspected.problems))
    return inspected.config
