"""Everything that can be known to be wrong before a process starts: settings, model, data, verifiers, folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.data_scan import ScanReport
from grpo_studio.engine_preflight import machine_problems
from grpo_studio.errors import StudioError
from grpo_studio.limit_checks import limit_problems
from grpo_studio.looks import Look, Seen, WholeLook
from grpo_studio.memory.known_forecast import over_card_note
from grpo_studio.model_preflight import model_problems
from grpo_studio.problem import Problem, problem_of
from grpo_studio.rules import Inspection, inspect
from grpo_studio.settings import Settings
from grpo_studio.verifier_preflight import check_rewards

FOLLOWS_FROM: Mapping[str, tuple[str, ...]] = {
    "algorithm.prompts_per_step": ("dataset.limit", "dataset.held_out"),
    "algorithm.max_completion_length": ("rollout.max_model_length",),
    "dataset.too_long": ("algorithm.max_completion_length", "rollout.max_model_length"),
}
"""What a scan blames, and the settings that may be the cause: where one of them is wrong, the scan says nothing new."""
OF_THE_MODEL = ("model.id", "model.chat_template")
DATA_FACTS = ("dataset_rows", "train_rows", "held_out_rows", "longest_prompt", "context_length")


@dataclass(frozen=True)
class CheckReport:
    """What `check` found.

    `config` is None when the settings are no configuration at all, `scan` when the whole data set was not looked at.
    """

    config: RunConfig | None
    problems: list[Problem]
    notes: list[str] = field(default_factory=list)
    derived: dict[str, Any] = field(default_factory=dict)
    scan: ScanReport | None = None

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
            "scan": None if self.scan is None else self.scan.as_dict(),
        }


def check(raw: Mapping[str, Any], settings: Settings, look: Look | None = None) -> CheckReport:
    """Find all problems of raw settings; looks at data and verifiers, loads no model, starts nothing.

    `look` says how closely the data are looked at: all of them, unless another is given.
    """
    inspected = inspect(raw)
    problems, config = list(inspected.problems), inspected.repaired
    if config is None:
        return CheckReport(inspected.config, problems)
    notes: list[str] = []
    seen = (look or WholeLook()).at(_with_sound_template(config, inspected), settings)
    found = _world_problems(config, settings, seen, notes)
    problems += [problem for problem in found if not _known(problem, inspected)]
    derived = config.derived() | seen.derived
    if inspected.config is None:  # what follows from a default in a wrong setting's place would mislead
        derived = {name: value for name, value in derived.items() if name in DATA_FACTS}
    return CheckReport(inspected.config, problems, notes, derived, seen.scan)


def _known(problem: Problem, inspected: Inspection) -> bool:
    """Whether what stops a run was told already, or follows from a setting that was."""
    causes = FOLLOWS_FROM.get(problem.field, ())
    return any(inspected.is_wrong(field) for field in (problem.field, *causes))


def _with_sound_template(config: RunConfig, inspected: Inspection) -> RunConfig:
    """Without a template that has no place for the question: all rows would be one prompt."""
    if not inspected.is_wrong("dataset.prompt_template"):
        return config
    return config.model_copy(update={"dataset": config.dataset.model_copy(update={"prompt_template": None})})


def _world_problems(config: RunConfig, settings: Settings, seen: Seen, notes: list[str]) -> Iterator[Problem]:
    """What the model, the data set, the verifiers and the disk say; adds to `notes`."""
    model, of_the_model = model_problems(config, settings)
    yield from model
    notes += of_the_model
    if config.model.attn_implementation == "flash_attention_2" and find_spec("flash_attn") is None:
        yield Problem("model.attn_implementation", "the package flash-attn is not installed", "install it, or use sdpa")
    yield from machine_problems(config, settings, notes)
    yield from limit_problems(config, notes)
    checked = check_rewards(config, settings, seen.samples)
    told = {problem.field for problem in model}
    told |= set(OF_THE_MODEL) if told & set(OF_THE_MODEL) else set()
    yield from (problem for problem in seen.problems if problem.field not in told)
    yield from checked.problems
    notes += [*seen.notes, *checked.notes]
    if (over := over_card_note(config, settings, seen.derived.get("longest_prompt"))) is not None:
        notes.append(over)
    try:
        settings.require_writable()
    except StudioError as error:
        yield problem_of("runs_dir", error)
