"""What a checkpoint says of itself, and reading it from a file that anybody may have written. No torch."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

MANIFEST = "checkpoint.json"
LARGEST = 16_000_000
"""Bytes of a manifest: the settings of a run and the names of some files are far below."""
LAST_STEP = 10**9
LARGEST_NUMBER = 1e300
"""An integer of JSON may be larger than any float."""
_REQUIRED = {"step", "attempt", "resumable", "config_hash", "settings"}


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint says of itself.

    Args:
        step: optimizer steps that are in it.
        attempt: which life of the run saved it.
        resumable: optimizer, scheduler, RNG and trainer state are with the weights.
        config_hash, settings: `resume_rules.config_hash` and `.settings_that_matter` of the run that saved it.
        data: number and digest of the training rows, as `training` counts them.
        score: held-out reward of these very weights, None when they were not scored.
        baseline: metrics of the evaluation before training.
        versions: of the libraries that wrote it.
        files: bytes of each file by its name in the folder.
        saved_at: seconds since 1970.
    """

    step: int
    attempt: int
    resumable: bool
    config_hash: str
    settings: Mapping[str, Any]
    data: Mapping[str, Any] = field(default_factory=dict)
    score: float | None = None
    baseline: Mapping[str, float | None] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, int] = field(default_factory=dict)
    saved_at: float = 0.0


def read_manifest(path: Path) -> Manifest:
    """The manifest in a file. What a newer version says on top is passed by; what an older one lacks is empty.

    Raises:
        OSError, ValueError, RecursionError: it cannot be read, or is no manifest.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"it has more than {LARGEST:,} bytes")
    document = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    if not isinstance(document, dict):
        raise ValueError("it is not a map")
    known = {one.name for one in fields(Manifest)}
    given = {name: value for name, value in document.items() if name in known}
    for name in given:
        if not _RULES[name](given[name]):
            raise ValueError(f"its {name} has an impossible value")
    if lacking := _REQUIRED - set(given):
        raise ValueError(f"it lacks {', '.join(sorted(lacking))}")
    return Manifest(**given)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < LARGEST_NUMBER and math.isfinite(value)


def _maps(rule: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(rule(item) for item in value.values())


def _are_files(value: Any) -> bool:
    """Names below the folder, each with its size: never a way out of it."""
    return _maps(_is_count)(value) and all(
        name and not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts for name in value
    )


_RULES: Mapping[str, Callable[[Any], bool]] = {
    "step": lambda value: _is_count(value) and value <= LAST_STEP,
    "attempt": lambda value: _is_count(value) and 1 <= value <= LAST_STEP,
    "resumable": lambda value: isinstance(value, bool),
    "config_hash": lambda value: isinstance(value, str),
    "settings": lambda value: isinstance(value, dict),
    "data": lambda value: isinstance(value, dict),
    "score": lambda value: value is None or _is_number(value),
    "baseline": _maps(lambda item: item is None or _is_number(item)),
    "versions": _maps(lambda item: isinstance(item, str)),
    "files": _are_files,
    "saved_at": _is_number,
}
