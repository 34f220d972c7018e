"""What loss backends, adapters and batch shapes can do together: the rules behind `check` and docs/engine.md.

Pure. Liger's limits are those of liger-kernel 0.8.5's `LigerFusedLinearGRPOLoss`, compared with trl 1.16.0 in
tests/integration/test_loss_parity.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from grpo_studio.config import RunConfig
from grpo_studio.declaration import value_at
from grpo_studio.lora_targets import ALL_LINEAR, HEAD_NAMES, target_names
from grpo_studio.problem import Problem

NO_SEQUENCE_LEVEL = ("cispo", "sapo", "vespo")
NOT_IN_LIGER = {
    "top_entropy_quantile": (1.0, "the mask of the most uncertain tokens"),
    "entropy_coef": (0.0, "an entropy bonus"),
    "use_adaptive_entropy": (False, "an entropy bonus"),
    "off_policy_mask_threshold": (None, "the off-policy mask"),
}
"""Fields of TRL's GRPOConfig without a parameter in Liger's loss: the value that asks for nothing, and what it is."""


def combination_problems(config: RunConfig) -> Iterator[Problem]:
    """Combinations of settings that the training engine refuses, each with its reason."""
    yield from _liger(config)
    yield from _full(config)
    yield from _chunks(config)
    yield from _dead_groups(config)
    yield from _adapter(config)
    yield from _micro_batch(config)


def _liger(config: RunConfig) -> Iterator[Problem]:
    algorithm = config.algorithm
    if config.memory.loss_backend != "liger":
        return
    for name, (neutral, what) in NOT_IN_LIGER.items():
        if algorithm.extra.get(name, neutral) != neutral:
            message = f"Liger's loss has no parameter for {what} (algorithm.extra.{name} is {algorithm.extra[name]!r})"
            yield Problem("memory.loss_backend", message, f"use trl or full, or leave {name} out")
    if algorithm.importance_sampling_level == "sequence" and algorithm.loss_type in NO_SEQUENCE_LEVEL:
        yield Problem(
            "memory.loss_backend",
            f"Liger's {algorithm.loss_type} has no ratio per sequence",
            "use trl or full, or set algorithm.importance_sampling_level=token",
        )
    if algorithm.loss_type == "luspo" and (reason := _luspo_differs(config)) is not None:
        yield Problem(
            "memory.loss_backend",
            f"Liger's luspo equals the published loss only per sequence, with beta 0 and no vLLM ratio: {reason}",
            "use trl or full",
        )


def _full(config: RunConfig) -> Iterator[Problem]:
    if config.memory.loss_backend == "full" and config.algorithm.extra.get("cast_lm_head_to_fp32"):
        yield Problem(
            "memory.loss_backend",
            "the full backend takes its logits from the model, whose head autocast runs in 16 bits "
            "(algorithm.extra.cast_lm_head_to_fp32 is true)",
            "use liger or trl, or leave cast_lm_head_to_fp32 out",
        )


def _luspo_differs(config: RunConfig) -> str | None:
    if config.algorithm.importance_sampling_level != "sequence":
        return "algorithm.importance_sampling_level is token"
    if config.algorithm.beta > 0:
        return f"algorithm.beta is {config.algorithm.beta:g}"
    if config.uses_vllm and config.rollout.importance_sampling_correction:
        return f"rollout.engine is {config.rollout.engine} with its correction on"
    return None


def _chunks(config: RunConfig) -> Iterator[Problem]:
    if config.memory.chunk_size is not None and config.memory.loss_backend != "liger":
        yield Problem(
            "memory.chunk_size",
            f"the {config.memory.loss_backend} backend has no such chunks (found {config.memory.chunk_size})",
            "leave it empty, or use memory.loss_backend=liger",
        )


def _dead_groups(config: RunConfig) -> Iterator[Problem]:
    if config.memory.skip_dead_groups and (reason := config.skipping_changes()) is not None:
        yield Problem("memory.skip_dead_groups", f"dead groups cannot be left out: {reason}", "leave it empty")


def _adapter(config: RunConfig) -> Iterator[Problem]:
    if config.memory.adapter == "none":
        return
    names = target_names(config.memory.lora_targets)
    if names is not None and not names:
        yield Problem("memory.lora_targets", "no module is named", "use all-linear, or names such as q_proj, v_proj")
    if names is not None and ALL_LINEAR in names:
        found = f"{ALL_LINEAR} stands alone (found {config.memory.lora_targets!r})"
        yield Problem("memory.lora_targets", found, "use it alone, or names alone")
    heads = [name for name in names or () if name.rpartition(".")[2] in HEAD_NAMES]
    if heads:
        yield Problem(
            "memory.lora_targets",
            f"{heads[0]} is the output layer: every loss backend reads its weight directly, so an adapter on it would "
            "never train",
            "leave it out, or use all-linear",
        )


def _micro_batch(config: RunConfig) -> Iterator[Problem]:
    algorithm, total, world = config.algorithm, config.completions_per_step, config.world_size
    micro = config.effective_micro_batch()
    if total % world or total % (micro * world) == 0:
        return
    share = total // world
    fits = [n for n in range(1, share + 1) if share % n == 0]
    nearest = min(fits, key=lambda n: (abs(n - micro), n))
    each = f" that each of {world} processes has" if world > 1 else ""
    yield Problem(
        "memory.micro_batch",
        f"{micro} does not divide the {share} completions of a step{each} "
        f"({algorithm.prompts_per_step} prompts x G = {algorithm.group_size})",
        f"use {nearest}, or leave it empty",
    )


def idle_settings(config: RunConfig) -> list[str]:
    """What was set and has no effect beside the other settings, each in a line: no reason to refuse a run."""
    default = RunConfig()
    idle = {
        f"memory.adapter is {config.memory.adapter}": (
            config.memory.adapter == "none",
            ("memory.lora_rank", "memory.lora_alpha", "memory.lora_dropout", "memory.lora_targets"),
        ),
        f"rollout.engine is {config.rollout.engine}": (
            not config.uses_vllm,
            (
                "rollout.importance_sampling_correction",
                "rollout.gpu_memory",
                "rollout.sync_canary",
                "rollout.canary_bound",
                "rollout.canary_stops",
            ),
        ),
        "scale.machines is 1": (config.scale.machines == 1, ("scale.main_process_ip", "scale.main_process_port")),
    }
    return [
        f"{name} has no effect: {why}"
        for why, (applies, names) in idle.items()
        if applies
        for name in names
        if value_at(config, name) != value_at(default, name)
    ]
