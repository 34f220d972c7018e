"""The parts of each phase of a step; those of a phase sum to it by construction. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from grpo_studio.memory.plan import Counts, Measured, Plan
from grpo_studio.memory.resident import resident_parts, step_transient
from grpo_studio.memory.rollout_bytes import rollout_parts, vllm_pool, vllm_sleeps
from grpo_studio.memory.sharding_bytes import split_of, working_bytes

CONTEXT_BYTES = 600 << 20
"""What CUDA itself takes on a card once kernels, cuBLAS workspaces and the driver's tables are loaded."""
FRAGMENTED = 0.04
"""Share of the allocated bytes that the caching allocator reserves besides: blocks of 2 MiB and their gaps."""
RESERVE_NOTE = (
    f"the allocator's reserve is a rule of thumb: {CONTEXT_BYTES >> 20} MiB for CUDA and {FRAGMENTED:.0%} of all else "
    "for rounding to 2 MiB and gaps between blocks"
)
PhaseParts = dict[str, dict[str, int]]


def phases(plan: Plan, measured: Measured, backend: str, micro_batch: int) -> PhaseParts:
    """Bytes of one device by phase and part, for a loss backend and completions in one pass."""
    counts = measured.counts
    resident = resident_parts(plan, counts)
    pool = _pool(plan, counts)
    found: PhaseParts = {"rollout": _sum(resident, rollout_parts(plan, counts))}
    if plan.config.algorithm.beta > 0:
        scored = measured.forward_parts(backend, micro_batch)
        found["reference"] = _sum(resident, pool, scored, _working(plan, counts, training=False))
    loss = _of_loss(plan, counts, measured.loss_parts(backend, micro_batch))
    found["loss"] = _sum(resident, pool, loss, _working(plan, counts, training=True))
    gradients = split_of(plan).of_gradients(counts.trainable * plan.trainable_bytes)
    step = {"gradients": gradients, "other": step_transient(plan, counts)}
    if plan.strategy == "ddp":
        step["other"] += working_bytes(plan, counts, training=True)
    found["optimizer"] = _sum(resident, pool, step)
    if plan.config.uses_vllm:
        sent = {"other": max(counts.largest_linear, counts.vocabulary) * plan.weight_bytes}
        found["sync"] = _sum(resident, {"vllm_pool": vllm_pool(plan, counts)} if _colocated(plan) else {}, sent)
    return {phase: _with_reserve(plan, parts) for phase, parts in found.items()}


def peak(found: PhaseParts) -> int:
    """Bytes of the greatest phase."""
    return max(sum(parts.values()) for parts in found.values())


def _of_loss(plan: Plan, counts: Counts, traced: Mapping[str, int]) -> dict[str, int]:
    """A trace is of one device with whole weights; here are its shares, and what 4-bit weights need besides."""
    parts = dict(traced)
    whole = parts["gradients"] * plan.trainable_bytes // plan.traced_bytes
    parts["gradients"] = split_of(plan).of_gradients(whole)
    if plan.adapter == "qlora":
        parts["other"] += counts.largest_linear * plan.compute_bytes
    return parts


def _working(plan: Plan, counts: Counts, training: bool) -> dict[str, int]:
    return {"other": working_bytes(plan, counts, training)}


def _colocated(plan: Plan) -> bool:
    return plan.config.rollout.engine == "vllm_colocate"


def _pool(plan: Plan, counts: Counts) -> dict[str, int]:
    """vLLM's pool while the trainer works."""
    return {"vllm_pool": vllm_pool(plan, counts)} if _colocated(plan) and not vllm_sleeps(plan) else {}


def _sum(*several: Mapping[str, int]) -> dict[str, int]:
    total: dict[str, int] = {}
    for parts in several:
        for part, size in parts.items():
            total[part] = total.get(part, 0) + size
    return {part: size for part, size in total.items() if size}


def _with_reserve(plan: Plan, parts: dict[str, int]) -> dict[str, int]:
    """On a GPU what the allocator holds besides; vLLM's pool was taken by size and has its own in it."""
    if not plan.on_gpu:
        return parts
    own = sum(size for part, size in parts.items() if part != "vllm_pool")
    return parts | {"allocator_reserve": CONTEXT_BYTES + int(FRAGMENTED * own)}
