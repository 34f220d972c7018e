"""The parts of a pass from a model's numbers alone, for models whose modules cannot be traced. Coarse, and said to be.

Activations: Korthikanti et al., arXiv 2205.05198, section 4, carried over to gated MLPs and attention without a matrix
of scores; logits as `training.full_logits` and both fused heads make them. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grpo_studio.config import LIGER_CHUNK_TOKENS
from grpo_studio.memory.plan import Counts, Plan
from grpo_studio.memory.traced import BACKENDS, ModelBytes
from grpo_studio.memory.tracing import counts_of

TRL_TILE = 4096
"""Tokens that TRL's fused head holds at once."""
LIGER_STATISTICS = 1 << 24
"""Logits that this program's own statistics hold beside Liger's loss."""


@dataclass(frozen=True)
class ClosedPass:
    """The closed form as `plan.Measured`; `model` are numbers counted from the modules, where that could be done."""

    plan: Plan
    model: ModelBytes | None = None
    backends: tuple[str, ...] = BACKENDS

    @property
    def counts(self) -> Counts:
        shape, memory = self.plan.shape, self.plan.config.memory
        if self.model is not None:
            return counts_of(self.model, shape.tied)
        adapter = 0 if memory.adapter == "none" else shape.lora_parameters(memory.lora_rank, memory.lora_targets)
        return Counts(
            parameters=shape.parameters,
            trainable=adapter or shape.parameters,
            adapter=adapter,
            quantizable=shape.linear_parameters,
            largest_linear=max(rows * columns for rows, columns in shape.linears.values()),
            layer=shape.layer_parameters,
            vocabulary=shape.vocabulary * shape.hidden,
        )

    def loss_parts(self, backend: str, micro_batch: int) -> Mapping[str, int]:
        plan = self.plan
        rows = micro_batch * plan.tokens
        kept = plan.shape.layers * plan.shape.hidden * plan.compute_bytes
        checkpointed = plan.config.memory.gradient_checkpointing
        layers = kept + self._layer_bytes() if checkpointed else plan.shape.layers * self._layer_bytes()
        return {
            "gradients": self.counts.trainable * plan.traced_bytes,
            "activations": rows * layers,
            "logits_and_loss": self._logits(backend, micro_batch, learning=True),
            "other": 0,
        }

    def forward_parts(self, backend: str, micro_batch: int) -> Mapping[str, int]:
        return {
            "gradients": 0,
            "activations": micro_batch * self.plan.tokens * self._layer_bytes(),
            "logits_and_loss": self._logits("full" if backend == "full" else "trl", micro_batch, learning=False),
            "other": 0,
        }

    def _layer_bytes(self) -> int:
        """What a layer keeps of a token for its backward pass: inputs of its matrices, and of norms in float32."""
        shape, size = self.plan.shape, self.plan.compute_bytes
        attention = 2 * shape.hidden + 2 * shape.heads * shape.head_dim + 2 * shape.kv_heads * shape.head_dim
        return size * (attention + 4 * shape.intermediate) + 2 * 4 * shape.hidden

    def _logits(self, backend: str, micro_batch: int, learning: bool) -> int:
        plan = self.plan
        tokens = micro_batch * (plan.completion_tokens + 1)
        if backend == "trl":
            tokens = min(tokens, TRL_TILE)
        elif backend == "liger":
            tokens = min(tokens, LIGER_CHUNK_TOKENS)
        each = plan.compute_bytes + 4 + (4 if learning else 0)  # as made, in float32, and the gradient of that
        statistics = 2 * 4 * LIGER_STATISTICS if backend == "liger" else 0
        return max(tokens * plan.shape.vocabulary * each, statistics)
