"""Values of `algorithm.extra` that have the right type and still cannot work: TRL would say so late, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.problem import Problem

CHOICES = {
    "multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum"),
    "vllm_model_impl": ("auto", "vllm", "transformers", "terratorch"),
}
"""Fields whose words TRL looks at only after the first rollout."""
SHARES = ("top_entropy_quantile", "ref_model_mixup_alpha")
"""Fields that are shares, from 0 to 1."""
POSITIVE = ("sapo_temperature_pos", "sapo_temperature_neg")
TRL_DEFAULT_CLIP_MAX = 3.0


def extra_rules(config: RunConfig) -> Iterator[Problem]:
    """Rules within `algorithm.extra` and between it and the settings. Pure."""
    extra = config.algorithm.extra
    for name, choices in CHOICES.items():
        if isinstance(extra.get(name), str) and extra[name] not in choices:
            yield _problem(name, extra[name], "is none of its words", f"use {' or '.join(choices)}")
    for name in SHARES:
        if isinstance(extra.get(name), int | float) and not 0 <= extra[name] <= 1:
            yield _problem(name, extra[name], "is no share", "use a number from 0 to 1")
    for name in POSITIVE:
        if isinstance(extra.get(name), int | float) and extra[name] <= 0:
            yield _problem(name, extra[name], "is not above 0, and the loss divides by it", "use a positive number")
    yield from _reference(config, extra)
    yield from _vllm(config, extra)
    if extra.get("log_completions_hub_repo") and not extra.get("log_completions"):
        name = "log_completions_hub_repo"
        yield _problem(name, extra[name], "needs log_completions", "add log_completions: true")


def _reference(config: RunConfig, extra: dict[str, Any]) -> Iterator[Problem]:
    if not extra.get("sync_ref_model"):
        return
    if config.algorithm.beta == 0:
        yield _problem("sync_ref_model", True, "needs a reference model, and algorithm.beta is 0", "leave it out")
    elif config.memory.adapter != "none":
        why = f"has no model of its own to sync with adapter {config.memory.adapter}"
        yield _problem("sync_ref_model", True, why, "leave it out")


def _vllm(config: RunConfig, extra: dict[str, Any]) -> Iterator[Problem]:
    if not config.uses_vllm:
        for name in (name for name in extra if name.startswith("vllm_")):
            why = f"is for vLLM, and rollout.engine is {config.rollout.engine}"
            yield _problem(name, extra[name], why, "leave it out, or use a vLLM engine")
    low = extra.get("vllm_importance_sampling_clip_min")
    high = extra.get("vllm_importance_sampling_clip_max", TRL_DEFAULT_CLIP_MAX)
    if isinstance(low, int | float) and isinstance(high, int | float) and low >= high:
        why = f"is not below vllm_importance_sampling_clip_max {high:g}"
        yield _problem("vllm_importance_sampling_clip_min", low, why, f"use less than {high:g}")


def _problem(name: str, value: Any, why: str, fix: str) -> Problem:
    return Problem(f"algorithm.extra.{name}", f"{value!r} {why}", fix)
