"""Verifiers that other verifiers call: found by name, loaded once in a process, and held to the contract.

A judge process says where to look (`configure`); until then, and wherever nobody says, it is the folder of verifiers
that ships with the program.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from grpo_studio.errors import VerifierError
from grpo_studio.settings import BUNDLED_REWARDS
from grpo_studio.verifiers.contract import Verdict, VerifierSpec
from grpo_studio.verifiers.discovery import Registry, discover, load_file, problems_of
from grpo_studio.verifiers.judge_score import read_returned

Part = Callable[[str, Mapping[str, Any]], Verdict]
_directories: tuple[Path, ...] = (BUNDLED_REWARDS,)


def configure(directories: Sequence[Path]) -> None:
    """Where parts are looked for from now on, in this order."""
    global _directories
    chosen = tuple(Path(directory).resolve() for directory in directories)
    if chosen != _directories:
        _directories = chosen
        _registry.cache_clear()
        spec_named.cache_clear()
        _part.cache_clear()


@cache
def spec_named(name: str) -> VerifierSpec:
    """The verifier of that name. Raises VerifierError with the nearest names, or with why its file does not load.

    By custom a verifier stands in a file of its name, so that one is tried first: loading all takes longer.
    """
    for directory in _directories:
        path = directory / f"{name}.py"
        if name.isidentifier() and not name.startswith("_") and path.is_file():
            for spec in load_file(path):
                if spec.name == name:
                    return spec
    return _registry().get(name)


def part_problems(name: str, params: Mapping[str, Any]) -> list[str]:
    """All that is wrong with this part, one message each; its columns are not known here."""
    try:
        spec = spec_named(name)
    except VerifierError as error:
        return [str(error)]
    if spec.place != "judge":
        return [f"{name} is scored by the trainer on its device, not by a judge; make it a reward of its own"]
    return problems_of(spec, params, spec.columns)


def part(name: str, params: Mapping[str, Any]) -> Part:
    """The verifier as a function of a completion and its columns. Its `warm` hook runs once.

    Calling it raises VerifierError for a column that is missing and for an answer that breaks the contract; what the
    verifier itself raises goes on to the caller.
    """
    return _part(name, json.dumps(params))


def part_seconds(name: str, params: Mapping[str, Any]) -> float:
    """How long one item of that part may rightly take; 0 when it does not say, or cannot be used."""
    if part_problems(name, params):
        return 0.0
    spec = spec_named(name)
    return spec.seconds(**spec.with_defaults(params)) if spec.seconds is not None else 0.0


def part_ideal(name: str, params: Mapping[str, Any], columns: Mapping[str, Any]) -> str | None:
    """A completion that deserves the part's highest score for this gold; None when it offers none."""
    if part_problems(name, params):
        return None
    spec = spec_named(name)
    return spec.ideal(**spec.with_defaults({**columns, **params})) if spec.ideal is not None else None


@lru_cache(maxsize=64)
def _part(name: str, params_text: str) -> Part:
    params = json.loads(params_text)
    if problems := part_problems(name, params):
        raise VerifierError("; ".join(problems))
    spec = spec_named(name)
    if spec.warm is not None:
        spec.warm(**spec.with_defaults(params))
    return lambda completion, columns: _judged(spec, params, completion, columns)


@cache
def _registry() -> Registry:
    return discover(_directories)


def _judged(spec: VerifierSpec, params: Mapping[str, Any], completion: str, columns: Mapping[str, Any]) -> Verdict:
    # Copies: one part must not change what the next one sees.
    given = {name: copy.deepcopy(value) for name, value in columns.items() if spec.takes(name)}
    for name in spec.columns:
        if name not in given and name not in spec.optional_columns:
            raise VerifierError(f"{spec.name} needs a column '{name}'")
    outcome, verdict = read_returned(spec.name, spec.function(completion, **{**given, **params}))
    if outcome not in ("ok", "abstained"):
        raise VerifierError(verdict.reason)
    return verdict
