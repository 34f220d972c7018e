"""A configuration near one that was traced, without a trace of its own: the closed form held against it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from grpo_studio.memory.closed_pass import ClosedPass
from grpo_studio.memory.plan import Counts, Measured, Plan
from grpo_studio.memory.traced import ModelBytes


@dataclass(frozen=True)
class Calibrated:
    """As `plan.Measured`: the closed form, times what a near one's trace says beside its own closed form.

    Args:
        plan: what it is for.
        near, traced: the plan that was traced, and its trace.
    """

    plan: Plan
    near: Plan
    traced: Measured

    @property
    def counts(self) -> Counts:
        return counts_with(self.plan, self.near, self.traced.counts)

    @property
    def backends(self) -> tuple[str, ...]:
        return self.traced.backends

    def loss_parts(self, backend: str, micro_batch: int) -> Mapping[str, int]:
        here, there = ClosedPass(self.plan), ClosedPass(self.near)
        parts = here.loss_parts(backend, micro_batch)
        found = _scaled(parts, there.loss_parts(backend, micro_batch), self.traced.loss_parts(backend, micro_batch))
        return found | {"gradients": self.counts.trainable * self.plan.traced_bytes}

    def forward_parts(self, backend: str, micro_batch: int) -> Mapping[str, int]:
        here, there = ClosedPass(self.plan), ClosedPass(self.near)
        parts = here.forward_parts(backend, micro_batch)
        return _scaled(
            parts, there.forward_parts(backend, micro_batch), self.traced.forward_parts(backend, micro_batch)
        )


def counts_with(plan: Plan, near: Plan, known: Counts) -> Counts:
    """A model's counted numbers when another adapter is put on it: the model's own stay as they were counted.

    Sizes in a config do not tell how many numbers there are in every model: experts, towers for images.
    """
    memory, before = plan.config.memory, near.config.memory
    if memory.adapter == "none":
        adapter = 0
    elif known.adapter and (memory.lora_rank, memory.lora_targets) == (before.lora_rank, before.lora_targets):
        adapter = known.adapter
    else:
        adapter = plan.shape.lora_parameters(memory.lora_rank, memory.lora_targets)
    return replace(known, adapter=adapter, trainable=adapter or known.parameters)


def model_with(plan: Plan, near: Plan, model: ModelBytes | None) -> ModelBytes | None:
    """The same for numbers that were counted from modules that cannot be traced; None when there are none."""
    if model is None:
        return None
    counts = counts_with(plan, near, ClosedPass(near, model).counts)
    return replace(model, adapter_parameters=counts.adapter, trainable=counts.trainable)


def _scaled(parts: Mapping[str, int], closed: Mapping[str, int], traced: Mapping[str, int]) -> dict[str, int]:
    """By the sum of what grows with the batch: at its greatest moment a trace may hold one part and not the other."""
    ratio = _growing(traced) / max(1, _growing(closed))
    return {part: size if part == "gradients" else round(size * ratio) for part, size in parts.items()}


def _growing(parts: Mapping[str, int]) -> int:
    return parts.get("activations", 0) + parts.get("logits_and_loss", 0)
