"""What the launch page's requests hold, read with their bounds: all of it comes from a browser and is hostile."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from grpo_studio import rules
from grpo_studio.config import RunConfig
from grpo_studio.errors import ConfigError, UsageError
from grpo_studio.ui.guard import Answer, answer_of

LARGEST_REQUEST_BYTES = 200_000
PROMPT_FIELDS = (
    "model.id", "model.revision", "model.chat_template", "dataset.source", "dataset.config", "dataset.split",
    "dataset.params", "dataset.columns", "dataset.system_prompt", "dataset.prompt_template",
)  # fmt: skip
"""The settings that decide what a prompt looks like."""


def answered(action: Callable[[Any, Any], Answer]) -> Callable[..., Answer]:
    """The action behind the one boundary for requests; their size and form are checked first."""

    @functools.wraps(action)
    def wrapper(self: Any, request: Any = None) -> Answer:
        return answer_of(action.__name__, lambda: action(self, checked(request)))

    return wrapper


def checked(request: Any) -> Mapping[str, Any]:
    """The request when it is a JSON object of a bearable size. Raises UsageError."""
    if request is None:
        return {}
    if not isinstance(request, Mapping):
        raise UsageError(f"the request holds {type(request).__name__}, not an object")
    try:
        size = len(json.dumps(request, allow_nan=False).encode())
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"the request is not plain JSON: {error}") from error
    if size > LARGEST_REQUEST_BYTES:
        raise UsageError(f"the settings have {size:,} bytes; at most {LARGEST_REQUEST_BYTES:,} are accepted")
    return request


def draft_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings under `data`. Raises UsageError when there are none."""
    draft = request.get("data")
    if not isinstance(draft, Mapping):
        raise UsageError("the request has no settings under 'data'")
    return draft


def name_of(request: Mapping[str, Any]) -> str | None:
    """The name under `name`, cut to 100 characters; None when it is empty or none."""
    name = request.get("name")
    return name.strip()[:100] or None if isinstance(name, str) else None


def differing(request: Mapping[str, Any]) -> tuple[str, tuple[Any, Any]]:
    """The setting under `field` and its two `values`. Raises UsageError when they are none."""
    field, values = request.get("field"), request.get("values")
    if not isinstance(field, str) or not 0 < len(field) <= 200:
        raise UsageError("the request names no setting under 'field'")
    if not isinstance(values, list) or len(values) != 2:
        raise UsageError("the request has no two values under 'values'")
    return field, (values[0], values[1])


def key_of(request: Mapping[str, Any]) -> str:
    """The key that a page gave to what it began. Raises UsageError when it is none."""
    key = request.get("key")
    if not isinstance(key, str) or not 8 <= len(key) <= 64:
        raise UsageError("the request has no key of 8 to 64 characters; reload the page")
    return key


def page_of(request: Mapping[str, Any]) -> str:
    """The name that an open page gave itself, or nothing."""
    return str(request.get("page") or "")[:64]


def valid_config(draft: Mapping[str, Any]) -> RunConfig:
    """The draft as a configuration. Raises ConfigError with all that is wrong."""
    inspected = rules.inspect(draft)
    if inspected.config is None:
        raise ConfigError("; ".join(str(problem) for problem in inspected.problems))
    return inspected.config


def config_for_prompts(draft: Mapping[str, Any]) -> RunConfig:
    """The draft as far as its prompts need it: what else is wrong with it does not matter to them.

    Raises:
        ConfigError: a setting that decides what a prompt looks like is wrong.
    """
    needed = {key: draft[key] for key in ("model", "dataset") if key in draft}
    algorithm = draft.get("algorithm")
    if isinstance(algorithm, Mapping) and isinstance(algorithm.get("extra"), Mapping):
        needed["algorithm"] = {"extra": algorithm["extra"]}  # chat_template_kwargs among them
    inspected = rules.inspect(needed)
    wrong = [item for item in inspected.problems if item.field.startswith(PROMPT_FIELDS)]
    if inspected.repaired is None or (inspected.config is None and wrong):
        raise ConfigError("; ".join(str(problem) for problem in wrong or inspected.problems))
    return inspected.repaired


def capped(value: Any, longest: int = 2_000, most: int = 60) -> Any:
    """Plain data from files, with texts cut and lists and mappings shortened, so that an answer stays small."""
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}…"
    if isinstance(value, Mapping):
        return {capped(str(key), 200): capped(item, longest, most) for key, item in [*value.items()][:most]}
    if isinstance(value, list | tuple):
        return [capped(item, longest, most) for item in value[:most]]
    if isinstance(value, float) and not math.isfinite(value):  # JSON has no form for it
        return None
    return value if value is None or isinstance(value, bool | int | float) else capped(str(value), longest)
