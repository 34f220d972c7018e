"""Changes of settings that may bring the peak down, from the smallest intervention on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from grpo_studio.memory.largest import largest_micro_batch
from grpo_studio.memory.phase_bytes import phases
from grpo_studio.memory.plan import Measured, Plan

SHORTEST_COMPLETION = 64
"""Tokens below which a completion is not cut: little can be reasoned in them."""
MOST_CARDS = 8
SHARE_STEP = 0.05
Proposed = Mapping[str, Any] | None


@dataclass(frozen=True)
class Candidate:
    """One kind of change.

    Args:
        keeps: whether the update stays the same but for rounding and time.
        propose: the settings for a plan that does not fit; None where it would not help or is already so.
    """

    name: str
    keeps: bool
    propose: Callable[[Plan, Measured], Proposed]


def _backend(plan: Plan, measured: Measured) -> Proposed:
    usable = "liger" in measured.backends and plan.config.memory.loss_backend != "liger"
    return {"memory.loss_backend": "liger"} if usable else None


def _micro_batch(plan: Plan, measured: Measured) -> Proposed:
    """The largest smaller one that fits and divides the completions of a process; the smallest when none fits."""
    fitting = largest_micro_batch(plan, measured, plan.config.memory.loss_backend)
    below = [n for n in range(1, plan.micro_batch) if plan.completions % n == 0]
    if not below:
        return None
    return {"memory.micro_batch": max((n for n in below if n <= fitting), default=1)}


def _checkpointing(plan: Plan, measured: Measured) -> Proposed:
    return None if plan.config.memory.gradient_checkpointing else {"memory.gradient_checkpointing": True}


def _vllm_share(plan: Plan, measured: Measured) -> Proposed:
    """As much of the card as the trainer leaves, in twentieths, when vLLM's weights and its cache fit into that."""
    if plan.config.rollout.engine != "vllm_colocate" or plan.card is None:
        return None
    found = phases(plan, measured, plan.config.memory.loss_backend, plan.micro_batch)
    own = max(sum(parts.values()) - parts.get("vllm_pool", 0) for parts in found.values())
    share = (plan.card.bytes - own) / plan.card.bytes // SHARE_STEP * SHARE_STEP
    least = 1.2 * measured.counts.parameters * plan.weight_bytes / plan.card.bytes
    return {"rollout.gpu_memory": round(share, 2)} if least < share < plan.config.rollout.gpu_memory else None


def _more_cards(count: int) -> Callable[[Plan, Measured], Proposed]:
    def propose(plan: Plan, measured: Measured) -> Proposed:
        scale = plan.config.scale
        if scale.machines > 1 or scale.processes >= count or plan.config.completions_per_step % count:
            return None
        settings: dict[str, Any] = {"scale.processes": count, "scale.strategy": "fsdp"}
        share = plan.config.completions_per_step // count
        if plan.config.memory.micro_batch is not None and share % plan.micro_batch:
            settings["memory.micro_batch"] = max(n for n in range(1, plan.micro_batch) if share % n == 0)
        return settings

    return propose


def _bfloat16(plan: Plan, measured: Measured) -> Proposed:
    return {"model.dtype": "bfloat16"} if plan.weight_bytes == 4 and plan.on_gpu else None


def _optimizer(plan: Plan, measured: Measured) -> Proposed:
    heavy = plan.config.algorithm.optimizer == "adamw_torch" and plan.adapter == "none"
    return {"algorithm.optimizer": "adafactor"} if heavy else None


def _adapter(kind: str) -> Callable[[Plan, Measured], Proposed]:
    def propose(plan: Plan, measured: Measured) -> Proposed:
        smaller = plan.adapter == "none" or (plan.adapter == "lora" and kind == "qlora")
        return {"memory.adapter": kind} if smaller else None

    return propose


def _completion(plan: Plan, measured: Measured) -> Proposed:
    half = plan.completion_tokens // 2
    return {"algorithm.max_completion_length": half} if half >= SHORTEST_COMPLETION else None


def _prompts(plan: Plan, measured: Measured) -> Proposed:
    """Half of the prompts, or half of that, until what sampling holds at once fits."""
    algorithm, world = plan.config.algorithm, plan.config.world_size
    fewer = [algorithm.prompts_per_step >> times for times in range(1, 17)]
    usable = [prompts for prompts in fewer if prompts and prompts * algorithm.group_size % world == 0]
    if not usable:
        return None
    prompts = next((prompts for prompts in usable if _can_sample(plan, measured, prompts)), usable[-1])
    settings: dict[str, Any] = {"algorithm.prompts_per_step": prompts}
    share = prompts * algorithm.group_size // world
    if plan.config.memory.micro_batch is not None and share % plan.micro_batch:
        settings["memory.micro_batch"] = max(n for n in range(1, plan.micro_batch) if share % n == 0)
    return settings


def _can_sample(plan: Plan, measured: Measured, prompts: int) -> bool:
    algorithm = plan.config.algorithm.model_copy(update={"prompts_per_step": prompts})
    fewer = replace(plan, config=plan.config.model_copy(update={"algorithm": algorithm}))
    found = phases(fewer, measured, plan.config.memory.loss_backend, plan.micro_batch)
    return plan.card is not None and sum(found["rollout"].values()) <= plan.card.bytes


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("backend", True, _backend),
    Candidate("micro_batch", True, _micro_batch),
    Candidate("vllm_share", True, _vllm_share),
    Candidate("checkpointing", True, _checkpointing),
    Candidate("cards_2", True, _more_cards(2)),
    Candidate("cards_4", True, _more_cards(4)),
    Candidate("cards_8", True, _more_cards(MOST_CARDS)),
    Candidate("bfloat16", False, _bfloat16),
    Candidate("optimizer", False, _optimizer),
    Candidate("lora", False, _adapter("lora")),
    Candidate("qlora", False, _adapter("qlora")),
    Candidate("completion", False, _completion),
    Candidate("prompts", False, _prompts),
)
