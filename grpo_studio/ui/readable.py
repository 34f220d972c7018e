"""Which paths of a draft this machine may read for the one who asks.

On an address that only this machine can reach: any. Where others can reach the app: those below its home folder and
below the folders of GRPO_STUDIO_DATA_DIRS, links resolved. What is refused is refused whether it is there or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from grpo_studio import preflight, rules
from grpo_studio.config import RunConfig
from grpo_studio.data import LOCAL_SUFFIXES
from grpo_studio.errors import ConfigError
from grpo_studio.looks import Look
from grpo_studio.preflight import CheckReport
from grpo_studio.problem import Problem
from grpo_studio.settings import Settings, is_loopback

FILE_SUFFIXES = (*LOCAL_SUFFIXES, ".gguf")
_MADE = re.compile(r"(builtin|reasoning_gym):")
_HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)


def confined(settings: Settings) -> bool:
    """Whether others can reach the app, so that not every file of this machine is theirs to read."""
    return not is_loopback(settings.host)


def path_problems(draft: Mapping[str, Any], settings: Settings) -> list[Problem]:
    """Problems of the settings of a draft that name a path which may not be read; the draft may be of any shape."""
    if not confined(settings):
        return []
    roots = [folder.resolve() for folder in (settings.home, *settings.data_dirs)]
    return [_problem(name) for name, text in _named(draft) if not may_be_read(text, roots)]


def require_inside(config: RunConfig, settings: Settings) -> None:
    """Raises ConfigError when the configuration names a path which may not be read."""
    if wrong := path_problems(config.model_dump(mode="json"), settings):
        raise ConfigError("; ".join(map(str, wrong)))


def check_inside(draft: Mapping[str, Any], settings: Settings, look: Look) -> CheckReport:
    """As `preflight.check`; a draft that names a path which may not be read is not looked into any further."""
    if wrong := path_problems(draft, settings):
        return CheckReport(None, [*wrong, *rules.inspect(draft).problems])
    return preflight.check(draft, settings, look)


def require_readable(text: str, settings: Settings) -> None:
    """Raises ConfigError when a path, of whatever kind, may not be read for the one who asks."""
    if not confined(settings):
        return
    roots = [folder.resolve() for folder in (settings.home, *settings.data_dirs)]
    try:
        path = Path(text).expanduser().resolve()
        inside = any(path.is_relative_to(root) for root in roots)
    except (OSError, ValueError, RuntimeError):  # a null character, a loop of links, no such home folder
        inside = False
    if not inside:
        raise ConfigError(str(_problem("path")))


def may_be_read(text: str, roots: Sequence[Path]) -> bool:
    """Whether a model or data set is no path at all, or one below a root."""
    if _MADE.match(text):
        return True
    try:
        path = Path(text).expanduser().resolve()
        inside = any(path.is_relative_to(root) for root in roots)
        is_id = _HUB_ID.fullmatch(text) is not None and not text.lower().endswith(FILE_SUFFIXES)
        return inside or (is_id and not path.exists())
    except (OSError, ValueError, RuntimeError):  # a null character, a loop of links, no such home folder
        return False


def _named(draft: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for section, key in (("model", "id"), ("dataset", "source")):
        settings = draft.get(section)
        value = settings.get(key) if isinstance(settings, Mapping) else None
        if isinstance(value, str):
            yield f"{section}.{key}", value
    rewards = draft.get("rewards")
    for place, reward in enumerate(rewards if isinstance(rewards, Sequence) else ()):
        yield from ((f"rewards.{place}.params", text) for text in _models_in(reward))


def _models_in(reward: Any) -> Iterator[str]:
    """Reward models by path, also those of the parts of an ensemble."""
    params = reward.get("params") if isinstance(reward, Mapping) else None
    if not isinstance(params, Mapping):
        return
    if isinstance(params.get("model"), str):
        yield params["model"]
    parts = params.get("parts")
    for part in parts if isinstance(parts, list) else ():
        yield from _models_in(part)


def _problem(name: str) -> Problem:
    return Problem(
        name,
        "this path is outside the folders that the app may read for visitors",
        "use an upload, a Hub id or what is built in; whoever runs the app can name folders in GRPO_STUDIO_DATA_DIRS",
    )
