"""Presets, YAML files and `--set a.b=value`: from text to the raw settings that `rules.inspect` judges."""

from __future__ import annotations

import copy
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic.fields import FieldInfo

from grpo_studio.config import RewardSettings, RunConfig
from grpo_studio.declaration import fields_of
from grpo_studio.errors import ConfigError, UsageError
from grpo_studio.naming import nearest_names
from grpo_studio.shown import shown

try:
    from yaml import CSafeLoader as _Fast  # eight times as fast, and a page reads hundreds of files
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeLoader as _Fast  # type: ignore[assignment]

LARGEST_CONFIG_BYTES = 1_000_000
ABOUT = "about"
"""Key under which a preset's file describes itself (`preset_about`); no setting of the run."""


class _Loader(_Fast):
    """Reads 1e-5 as the number that it is in YAML 1.2; PyYAML's 1.1 wants 1.0e-5 and takes it for text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d[\d_]*)(\.[\d_]*)?[eE][-+]?\d+"), list("-+0123456789")
)


def preset_names(directories: Iterable[Path]) -> list[str]:
    """Names of all presets, sorted; one name once."""
    return sorted({path.stem for folder in directories if folder.is_dir() for path in folder.glob("*.yaml")})


def read_preset(name: str, directories: Sequence[Path]) -> dict[str, Any]:
    """The raw settings of a preset.

    Raises:
        UsageError: no preset goes by that name.
    """
    return _settings_only(parse_preset(name, directories))


def parse_preset(name: str, directories: Sequence[Path]) -> dict[str, Any]:
    """All that a preset's file holds: its settings, and what it says of itself.

    Raises:
        UsageError: no preset goes by that name.
    """
    known = preset_names(directories)
    if name not in known:
        raise UsageError(f"no preset {name!r}; {nearest_names(name, known)}")
    for folder in directories:
        path = folder / f"{name}.yaml"
        if path.is_file():
            return _parse_file(path)
    raise UsageError(f"no preset {name!r}; {nearest_names(name, known)}")


def read_config_file(path: Path) -> dict[str, Any]:
    """Parse a YAML file of settings; a preset's file is one.

    Raises:
        ConfigError: it is missing, too large, not YAML, or not a mapping.
    """
    return _settings_only(_parse_file(path))


def _settings_only(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != ABOUT}


def _parse_file(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_CONFIG_BYTES:
            raise ConfigError(f"{path} has {path.stat().st_size} bytes; a config has at most {LARGEST_CONFIG_BYTES}")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the config {path}: {error}; give a YAML file of settings") from error
    return parse_config(text, str(path))


def parse_config(text: str, origin: str) -> dict[str, Any]:
    """Parse YAML text; `origin` names it in errors. Aliases are refused: a few lines of them expand without end."""
    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, Loader=_Fast)):
            raise ConfigError(f"{origin} uses YAML aliases (*name); write the values out")
        data = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        reason = shown(str(error), 300)
        raise ConfigError(f"{origin} is not YAML: {reason}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(
            f"{origin} holds {type(data).__name__}, not a mapping of settings such as 'algorithm: {{steps: 10}}'"
        )
    return data


def dump_config(config: RunConfig) -> str:
    """The whole configuration as YAML, as it is kept in a run folder."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def with_overrides(data: dict[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """A copy of raw settings with each `a.b=value` put in; list entries go by number.

    Text stands as it is, without quotes or escapes; other values are YAML.

    Raises:
        UsageError: an override has no '=', or its name leads through something that is no section.
    """
    result = copy.deepcopy(data)
    for override in overrides:
        name, equals, text = override.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set {override!r} has no '='; write it like --set algorithm.steps=20")
        _put(result, name.strip().split("."), _value(name, text), override)
    return result


def _value(name: str, text: str) -> Any:
    """Text for a setting that is text, as it stands; YAML for all others. Empty means None."""
    if not text.strip():
        return None
    return text if _is_text(name) else parse_config(f"value: {text}", f"--set {name}")["value"]


def _is_text(name: str) -> bool:
    if re.fullmatch(r"rewards\.\d+\.\w+", name):
        fields: Mapping[str, FieldInfo] = RewardSettings.model_fields
        name = name.rpartition(".")[2]
    else:
        fields = fields_of(RunConfig)
    kind = fields[name].annotation if name in fields else None
    return kind is str or (typing.get_origin(kind) is types.UnionType and str in typing.get_args(kind))


def _put(target: Any, parts: list[str], value: Any, override: str) -> None:
    part, rest = parts[0], parts[1:]
    if isinstance(target, list):
        if not part.isdecimal() or int(part) >= len(target):
            raise UsageError(
                f"--set {override!r}: {part!r} is not one of the {len(target)} entries (0 to {len(target) - 1})"
            )
        key: Any = int(part)
    elif isinstance(target, dict):
        key = part
        if rest and not isinstance(target.get(part), dict | list):
            target[part] = {}
    else:
        raise UsageError(f"--set {override!r}: {part!r} is below a plain value; name a setting such as algorithm.steps")
    if rest:
        _put(target[key], rest, value, override)
    else:
        target[key] = value
