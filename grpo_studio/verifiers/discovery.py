"""Finds verifiers by path. A file that fails to load is listed with its error and breaks nothing else."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import sys
import traceback
import types
import typing
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpo_studio.errors import VerifierError
from grpo_studio.naming import nearest_names
from grpo_studio.verifiers.contract import REQUIRED, VerifierSpec, spec_of


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


def discover(directories: Sequence[Path]) -> Registry:
    """Load every `*.py` of the folders, in their order, then by file name; the first verifier of a name stays.

    A folder that does not exist is an empty one (a new home has no `rewards/` yet). Files that begin with an
    underscore are skipped.
    """
    registry = Registry()
    for directory in dict.fromkeys(Path(directory).resolve() for directory in directories):
        for path in sorted(directory.glob("*.py")):
            if not path.name.startswith("_"):
                _add_file(registry, path)
    return registry


def load_file(path: Path) -> list[VerifierSpec]:
    """The verifiers that one file defines. Raises VerifierError, whatever the file itself raised."""
    # The name must be unique for each path: two folders may both hold a my_rule.py.
    name = f"grpo_studio_reward_{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise VerifierError(f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # A file that prints while it loads must not spoil the one JSON document of `--json`.
        with contextlib.redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit and the like are failures of that file, not of the app.
        sys.modules.pop(name, None)
        raise VerifierError(_explain(error, path)) from error
    values = vars(module).values()
    # One imported from elsewhere belongs to the file that defines it.
    return [found for value in values if (found := spec_of(value)) and found.function.__module__ == name]


def problems_of(spec: VerifierSpec, params: Mapping[str, Any], columns: Collection[str]) -> list[str]:
    """All that is wrong with this use of a verifier, one message each; empty when it can be used."""
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
    if not problems and spec.check is not None:
        problems.extend(_checked(spec, params))
    for column in spec.columns:
        if column not in columns and column not in spec.optional_columns:
            found = ", ".join(sorted(columns)) or "none"
            problems.append(f"{spec.name} needs a column '{column}'; the data has: {found}")
    return problems


def _add_file(registry: Registry, path: Path) -> None:
    try:
        specs = load_file(path)
    except VerifierError as error:
        registry.failures.append(LoadFailure(path, str(error)))
        return
    if not specs:
        registry.failures.append(LoadFailure(path, f"{path} defines no function marked with @verifier"))
    for spec in specs:
        first = registry.specs.setdefault(spec.name, spec)
        if first is not spec:
            message = f"verifier '{spec.name}' of {path} is refused: {first.path} already has one of that name"
            registry.failures.append(LoadFailure(path, message))


def _explain(error: BaseException, path: Path) -> str:
    message = f"{type(error).__name__}: {error}".strip().rstrip(":")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{message} (line {lines[-1]})" if lines else message


def _checked(spec: VerifierSpec, params: Mapping[str, Any]) -> list[str]:
    assert spec.check is not None
    try:
        message = spec.check(**spec.with_defaults(params))
    except Exception as error:
        message = f"its check failed: {type(error).__name__}: {error}"
    return [f"{spec.name}: {message}"] if message else []


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
    if not isinstance(wanted, type):
        return True
    if wanted is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if wanted is tuple:
        return isinstance(value, (list, tuple))
    return isinstance(value, wanted)
