"""The settings of a probe and of each of its backends, from those of a run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grpo_studio.config import RunConfig
from grpo_studio.errors import ConfigError, UsageError
from grpo_studio.naming import names_in
from grpo_studio.rules import cross_field_problems
from grpo_studio.shown import shown

BACKENDS = ("full", "trl", "liger")
DTYPES = ("float32", "bfloat16")
Changes = Mapping[str, Mapping[str, object]]
BASELINE = "full"
"""The backend that others are held against, wherever it is among those that were chosen."""


def parse_backends(text: str) -> tuple[str, ...]:
    """Names of loss backends by commas, each once.

    Raises:
        UsageError: one is unknown, comes twice, or none is given.
    """
    return _names(text, "--backends", BACKENDS)


def parse_dtypes(text: str) -> tuple[str, ...]:
    """Number formats by commas, each once.

    Raises:
        UsageError: one is unknown, comes twice, or none is given.
    """
    return _names(text, "--dtypes", DTYPES)


def reference_first(backends: Sequence[str]) -> list[str]:
    """The chosen backends in the order in which they run: the one that others are held against first."""
    first = BASELINE if BASELINE in backends else backends[0]
    return [first, *(name for name in backends if name != first)]


def of_one_process(config: RunConfig) -> tuple[RunConfig, list[str]]:
    """The settings that one process probes, and what is not as in the run.

    Its batch is the share of one process; nothing leaves the machine, and no completion is left out of a pass.
    """
    notes: list[str] = []
    prompts, world = config.algorithm.prompts_per_step, config.world_size
    if world > 1:
        notes.append(
            f"the run has {world} processes ({config.scale.strategy}); one of them is probed, on its share of the "
            "batch, with whole weights, gradients and optimizer: sharding takes less"
        )
        prompts = max(1, prompts // world)
    if config.uses_vllm:
        notes.append(f"the batch was sampled by transformers, not by {config.rollout.engine}, whose memory is apart")
    completions, micro_batch = prompts * config.algorithm.group_size, config.effective_micro_batch()
    if completions % micro_batch:
        micro_batch = max(n for n in range(1, micro_batch + 1) if completions % n == 0)
    changes: Changes = {
        "algorithm": {"prompts_per_step": prompts},
        "memory": {
            "micro_batch": micro_batch, "skip_dead_groups": False, "worst_case_step": False, "track_tensors": False,
            "snapshot": False,
        },
        "rollout": {"engine": "transformers", "server_url": None, "server_devices": None},
        "scale": {"processes": 1, "strategy": "none", "machines": 1, "machine_rank": 0, "main_process_ip": None},
        "evaluation": {"every": 0},
        "checkpoint": {"every": 0},
        "limits": {"hours": None, "cost": None, "tokens": None},
        "report": {"to": "none", "hub_repo": None},
    }  # fmt: skip
    return _changed(config, changes), notes


def of_backend(config: RunConfig, backend: str, dtype: str | None = None) -> RunConfig:
    """The same settings with another loss backend, and another number format where one is given.

    Raises:
        ConfigError: they do not go together.
    """
    memory: dict[str, object] = {"loss_backend": backend}
    if backend != "liger":
        memory["chunk_size"] = None
    changed = _changed(config, {"memory": memory, "model": {} if dtype is None else {"dtype": dtype}})
    before = {str(problem) for problem in cross_field_problems(config)}
    for problem in cross_field_problems(changed):
        if str(problem) not in before:
            raise ConfigError(str(problem))
    return changed


def _changed(config: RunConfig, changes: Changes) -> RunConfig:
    sections = {name: getattr(config, name).model_copy(update=values) for name, values in changes.items()}
    return config.model_copy(update=sections)


def _names(text: str, option: str, known: Sequence[str]) -> tuple[str, ...]:
    names = tuple(names_in(text))
    wrong = next((name for place, name in enumerate(names) if name not in known or name in names[:place]), None)
    if not names:
        raise UsageError(f"{option} names nothing; give some of {','.join(known)}")
    if wrong is not None:
        what = "comes twice" if wrong in known else "is not known"
        raise UsageError(f"{option}: {shown(wrong)} {what}; give some of {','.join(known)}, each once")
    return names
