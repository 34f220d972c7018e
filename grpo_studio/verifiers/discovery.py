"""Finds verifiers by path. A file that fails to load is listed with its error and breaks nothing else."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpo_studio.errors import VerifierError
from grpo_studio.naming import nearest_names
from grpo_studio.verifiers.contract import GIVEN_COLUMNS, REQUIRED, VerifierSpec
from grpo_studio.verifiers.loading import LOAD_LIMIT, load_all, load_checked, load_file, load_in_this_process

__all__ = ["LoadFailure", "Registry", "discover", "load_checked", "load_file", "load_in_this_process", "problems_of"]


@dataclass(frozen=True)
class LoadFailure:
    """A verifier file (or one verifier in it) that cannot be used, and why."""

    path: Path
    message: str


@dataclass
class Registry:
    """The verifiers found, by name, and the files that failed."""

    specs: dict[str, VerifierSpec] = field(default_factory=dict)
    failures: list[LoadFailure] = field(default_factory=list)

    def get(self, name: str) -> VerifierSpec:
        """The spec of that name. Raises VerifierError with the nearest names."""
        if name in self.specs:
            return self.specs[name]
        raise VerifierError(f"no verifier {name!r}; {nearest_names(name, sorted(self.specs))}")


def discover(directories: Sequence[Path], load_limit: float = LOAD_LIMIT) -> Registry:
    """Load every `*.py` of the folders, in their order, then by file name; the first verifier of a name stays.

    A folder that does not exist is an empty one (a new home has no `rewards/` yet). Files that begin with an
    underscore are skipped. `load_limit` is in seconds, for one file.
    """
    registry = Registry()
    folders = dict.fromkeys(Path(directory).resolve() for directory in directories)
    paths = [path for folder in folders for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]
    for path, found in load_all(paths, load_limit):
        _add_file(registry, path, found)
    return registry


def problems_of(spec: VerifierSpec, params: Mapping[str, Any], columns: Collection[str]) -> list[str]:
    """All that is wrong with this use of a verifier, one message each; empty when it can be used."""
    problems = misfits_of(spec, params)
    if not problems:
        try:
            refusal = refusal_of(spec, params)
        except VerifierError as error:
            refusal = str(error)
        problems += [refusal] if refusal else []
    for column in spec.columns:
        if column not in columns and column not in spec.optional_columns and column not in GIVEN_COLUMNS:
            found = ", ".join(sorted(columns)) or "none"
            problems.append(f"{spec.name} needs a column '{column}'; the data has: {found}")
    return problems


def misfits_of(spec: VerifierSpec, params: Mapping[str, Any]) -> list[str]:
    """All params that are unknown, missing or of another type than the verifier's signature says."""
    problems = []
    for name in params:
        if name not in spec.params:
            known = ", ".join(spec.params) or "none"
            problems.append(f"{spec.name} has no param '{name}'; it takes: {known}")
    for name, default in spec.params.items():
        if name not in params:
            if default is REQUIRED:
                problems.append(f"{spec.name} needs the param '{name}'")
        elif not _fits(params[name], _expected_type(spec, name)):
            expected = _type_name(_expected_type(spec, name))
            problems.append(f"{spec.name}: param '{name}' is {params[name]!r:.80}; it must be {expected}")
    return problems


def refusal_of(spec: VerifierSpec, params: Mapping[str, Any]) -> str | None:
    """What the verifier's own check says against params that fit its signature.

    Raises VerifierError when the check itself fails.
    """
    if spec.check is None:
        return None
    try:
        message = spec.check(**spec.with_defaults(params))
    except Exception as error:
        raise VerifierError(f"{spec.name}: its check failed: {type(error).__name__}: {error}") from error
    return f"{spec.name}: {message}" if message else None


def _add_file(registry: Registry, path: Path, found: list[VerifierSpec] | str) -> None:
    if isinstance(found, str):
        registry.failures.append(LoadFailure(path, found))
        return
    if not found:
        what = "is empty" if not path.stat().st_size else "defines no function marked with @verifier"
        registry.failures.append(LoadFailure(path, f"{path} {what}"))
    for spec in found:
        first = registry.specs.setdefault(spec.name, spec)
        if first is not spec:
            message = f"verifier '{spec.name}' of {path} is refused: {first.path} already has one of that name"
            registry.failures.append(LoadFailure(path, message))


def _expected_type(spec: VerifierSpec, name: str) -> Any:
    if name in spec.annotations:
        return spec.annotations[name]
    default = spec.params[name]
    return Any if default is None or default is REQUIRED else type(default)


def _type_name(expected: Any) -> str:
    return expected.__name__ if isinstance(expected, type) else str(expected).replace("typing.", "")


def _fits(value: Any, expected: Any) -> bool:
    """Whether a value from YAML or JSON fits an annotation; one too clever for this check fits always."""
    origin = typing.get_origin(expected)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in typing.get_args(expected))
    if origin is typing.Literal:
        return value in typing.get_args(expected)
    wanted = origin or expected
    if wanted is None or wanted is type(None):
        return value is None
    if wanted is Any or not isinstance(wanted, type):  # Any is a class from Python 3.11 on
        return True
    if wanted is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if wanted is tuple:
        return isinstance(value, (list, tuple))
    return isinstance(value, wanted)
