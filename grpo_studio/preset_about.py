"""What a preset says of itself: for whom it is, the hardware it needs, and where its numbers come from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grpo_studio.config_files import ABOUT, parse_preset
from grpo_studio.errors import ConfigError


class PresetSource(BaseModel):
    """A paper or page: what was taken from it, and its address."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str = Field(min_length=1, max_length=500)
    url: str = Field(pattern=r"^https://[^\s\"'<>]+$", max_length=500)


class PresetAbout(BaseModel):
    """The `about` of a preset's file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = Field(min_length=1, max_length=80)
    purpose: str = Field(min_length=1, max_length=500)
    hardware: str = Field(min_length=1, max_length=300)
    sources: tuple[PresetSource, ...] = ()


def read_about(name: str, directories: Sequence[Path]) -> PresetAbout | None:
    """What a preset says of itself, or None when it says nothing.

    Raises:
        UsageError: no preset goes by that name.
        ConfigError: its `about` is not {title, purpose, hardware, sources: [{what, url}]}.
    """
    about: Any = parse_preset(name, directories).get(ABOUT)
    if about is None:
        return None
    try:
        return PresetAbout.model_validate(about)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in (ABOUT, *first["loc"]))
        raise ConfigError(
            f"the preset {name} describes itself wrongly: {where}: {first['msg']}; mend or remove {ABOUT}"
        ) from error
