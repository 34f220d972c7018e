"""What several processes divide among them, and what each gathers or copies to work. Pure.

FSDP2 as accelerate 1.15 sets it up: one unit a layer, the next one fetched while one works; the last norm and the head
(with the embedding, when tied) stay gathered; trained weights become float32. ZeRO: Rajbhandari et al., arXiv
1910.02054, and DeepSpeed's defaults. None of it was measured: forecasts say so in a note.
"""

from __future__ import annotations

from dataclasses import dataclass

from grpo_studio.memory.plan import Counts, Plan

ZERO3_LIVE = 1_000_000_000
"""Numbers that DeepSpeed leaves gathered (stage3_max_live_parameters, stage3_max_reuse_distance)."""


@dataclass(frozen=True)
class Split:
    """How many ways each kind is divided.

    Args:
        keeps_master: DeepSpeed's float32 copy of 16-bit weights.
        casts_down: DeepSpeed turns weights to bfloat16 when matrices are multiplied in it.
    """

    frozen: int = 1
    trained: int = 1
    gradients: int = 1
    states: int = 1
    keeps_master: bool = False
    casts_down: bool = False

    def of_frozen(self, size: int) -> int:
        return -(-size // self.frozen)

    def of_trained(self, size: int) -> int:
        return -(-size // self.trained)

    def of_gradients(self, size: int) -> int:
        return -(-size // self.gradients)

    def of_states(self, size: int) -> int:
        return -(-size // self.states)

    def stored_bytes(self, size: int) -> int:
        """Of one number of the weights that are loaded with `size` bytes each."""
        return 2 if self.casts_down else size

    def master_bytes(self, trainable: int) -> int:
        """DeepSpeed's float32 copy of the trained weights."""
        return self.of_states(4 * trainable) if self.keeps_master else 0


def split_of(plan: Plan) -> Split:
    """What the run's strategy divides over its processes."""
    world, strategy = plan.config.world_size, plan.strategy
    if strategy == "fsdp":
        return Split(world, world, world, world)
    if strategy == "zero2":
        return Split(1, 1, world, world, keeps_master=plan.autocasts, casts_down=plan.autocasts)
    if strategy == "zero3":
        return Split(world, world, world, world, keeps_master=plan.autocasts, casts_down=plan.autocasts)
    return Split()


def working_bytes(plan: Plan, counts: Counts, training: bool) -> int:
    """Gathered weights, and in training gradients before they are divided, or copies of them that are sent."""
    size, strategy = plan.compute_bytes, plan.strategy
    trained_layer = counts.layer if plan.adapter == "none" else counts.adapter // max(1, plan.shape.layers)
    trained_head = counts.vocabulary if plan.adapter == "none" else 0
    if strategy == "ddp":
        return counts.trainable * plan.trainable_bytes if training else 0
    if strategy == "fsdp":
        gathered = 2 * counts.layer + counts.vocabulary
        return size * (gathered + (2 * trained_layer + trained_head if training else 0))
    bucket = plan.shape.hidden**2
    if strategy == "zero2":
        return 2 * size * bucket if training else 0
    if strategy == "zero3":
        live = min(counts.parameters, ZERO3_LIVE)
        return size * (live + (2 * bucket + trained_head if training else 0))
    return 0


def gathered_for_rollout(plan: Plan, counts: Counts) -> int:
    """ZeRO-3 gathers the whole model to sample (TRL's ds3_gather_for_generation); FSDP goes layer by layer."""
    if plan.strategy == "zero3" and plan.extra("ds3_gather_for_generation", True):
        return counts.parameters * plan.compute_bytes
    return working_bytes(plan, counts, training=False)
