"""From a run's plan to what is asked of a tracer, and from its answer to the parts of a pass. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grpo_studio.memory.plan import Counts, Plan
from grpo_studio.memory.traced import ModelBytes, Traced, TraceRequest


def request_of(plan: Plan, config: Mapping[str, Any]) -> TraceRequest:
    """What a forecast for this plan asks of a tracer. QLoRA is traced as LoRA on 16-bit weights.

    Args:
        config: the model's config.json.
    """
    memory, algorithm = plan.config.memory, plan.config.algorithm
    adapter = memory.adapter != "none"
    return TraceRequest(
        config=config,
        prompt_tokens=plan.prompt_tokens,
        completion_tokens=plan.completion_tokens,
        dtype=plan.dtype,
        autocast=plan.autocasts,
        attention=plan.config.model.attn_implementation,
        adapter="lora" if adapter else "none",
        lora_rank=memory.lora_rank if adapter else 16,
        lora_targets=memory.lora_targets if adapter else "all-linear",
        lora_dropout=memory.lora_dropout if adapter else 0.0,
        checkpointing=memory.gradient_checkpointing,
        chunk_size=memory.chunk_size,
        loss_type=algorithm.loss_type,
        by_token=algorithm.importance_sampling_level == "token",
        reference=algorithm.beta > 0,
        old=has_old_log_probs(plan),
        entropy=has_entropy_gradient(plan),
        temperature=algorithm.temperature,
        device="cuda" if plan.on_gpu else "cpu",
        padded=True,
    )


def has_entropy_gradient(plan: Plan) -> bool:
    """Whether the loss has a bonus for entropy, or leaves out tokens by it."""
    bonus = plan.extra("entropy_coef") or plan.extra("use_adaptive_entropy")
    return bool(bonus) or plan.extra("top_entropy_quantile", 1.0) != 1.0


def has_old_log_probs(plan: Plan) -> bool:
    """Whether the trainer scores the completions once more before it learns from them (trl 1.16): always for vLLM's
    correction, else when a batch is gone over several times.
    """
    rollout = plan.config.rollout
    corrected = plan.config.uses_vllm and rollout.importance_sampling_correction
    return corrected or plan.config.algorithm.num_iterations > 1


@dataclass(frozen=True)
class TracedModel:
    """A trace as `plan.Measured`.

    Args:
        completions: what one process has in a step: that many in one pass leave nothing to accumulate.
        tied: whether embedding and head are one matrix.
    """

    traced: Traced
    completions: int
    tied: bool

    @property
    def counts(self) -> Counts:
        return counts_of(self.traced.model, self.tied)

    def loss_parts(self, backend: str, micro_batch: int) -> Mapping[str, int]:
        return self.traced.loss_parts(backend, micro_batch, accumulates=micro_batch < self.completions)

    def forward_parts(self, backend: str, micro_batch: int) -> Mapping[str, int]:
        return self.traced.forward_parts(backend, micro_batch)

    @property
    def backends(self) -> tuple[str, ...]:
        return tuple(self.traced.loss)


def counts_of(model: ModelBytes, tied: bool) -> Counts:
    """A traced model's numbers as a forecast counts them."""
    return Counts(
        parameters=model.parameters,
        trainable=model.trainable,
        adapter=model.adapter_parameters,
        quantizable=model.quantizable,
        largest_linear=model.largest_linear,
        layer=model.layer,
        vocabulary=model.embeddings if tied else model.embeddings // 2,
        buffer_bytes=model.buffers,
    )
