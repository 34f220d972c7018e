"""What lies in memory all through a step: weights, adapter, reference and optimizer states. Pure.

Read in trl 1.16.0 and transformers 5.17.0: a reference model only with a KL term and no adapter (an adapter is switched
off instead), in the policy's format; states from the first optimizer step on; gradients are gone after each step.
"""

from __future__ import annotations

from grpo_studio.memory.closed_forms import ADAM_STATES, ModelShape, nf4_bytes
from grpo_studio.memory.plan import Counts, Plan
from grpo_studio.memory.sharding_bytes import Split, split_of


def resident_parts(plan: Plan, counts: Counts) -> dict[str, int]:
    """Bytes of one device that every phase has."""
    split = split_of(plan)
    return {
        "weights": _weights(plan, counts, split),
        "adapter": split.of_trained(counts.adapter * plan.adapter_bytes),
        "reference": split.of_frozen(counts.parameters * plan.weight_bytes) if has_reference_model(plan) else 0,
        "optimizer": split.of_states(optimizer_bytes(plan, counts)) + split.master_bytes(counts.trainable),
    }


def has_reference_model(plan: Plan) -> bool:
    """Whether a second model is loaded for the KL term."""
    return plan.config.algorithm.beta > 0 and plan.adapter == "none"


def optimizer_bytes(plan: Plan, counts: Counts) -> int:
    """States of the optimizer, of all devices together.

    AdamW keeps both moments in the format of the weights (torch.optim), Adafactor a row and a column of each matrix
    (Shazeer and Stern, arXiv 1804.04235, algorithm 4), plain SGD nothing. DeepSpeed's states are float32.
    """
    size = 4 if split_of(plan).keeps_master else plan.trainable_bytes
    kind = plan.config.algorithm.optimizer
    if kind == "adamw_torch":
        return ADAM_STATES * counts.trainable * size
    return 0 if kind == "sgd" else _factored_numbers(plan) * size


def step_transient(plan: Plan, counts: Counts) -> int:
    """What an optimizer step makes besides: on a GPU torch's AdamW works on all tensors at once and takes the root of
    the second moment of all of them; on a CPU it goes tensor by tensor, and so does Adafactor, in float32.
    """
    kind, size = plan.config.algorithm.optimizer, plan.trainable_bytes
    largest = _largest_trained(plan, counts)
    if kind == "adamw_torch":
        whole = split_of(plan).of_states(counts.trainable * size)
        return whole if plan.on_gpu else min(whole, 2 * largest * size)
    copies = 2 if size == 4 else 4  # 16-bit weights and gradients are turned to float32 first
    return copies * 4 * largest if kind == "adafactor" else 0


def _weights(plan: Plan, counts: Counts, split: Split) -> int:
    if plan.adapter == "qlora":
        rest = (counts.parameters - counts.quantizable) * plan.weight_bytes
        return nf4_bytes(counts.quantizable) + rest + counts.buffer_bytes
    stored = plan.trainable_bytes if plan.adapter == "none" else plan.weight_bytes
    size = split.stored_bytes(stored)
    whole = counts.parameters * size
    return (split.of_trained(whole) if plan.adapter == "none" else split.of_frozen(whole)) + counts.buffer_bytes


def _largest_trained(plan: Plan, counts: Counts) -> int:
    """Numbers in the largest matrix that is trained."""
    if plan.adapter == "none":
        return max(counts.vocabulary, counts.largest_linear)
    widest = max(max(size) for size in plan.shape.linears.values())
    return widest * plan.config.memory.lora_rank


def _factored_numbers(plan: Plan) -> int:
    shape, rank = plan.shape, plan.config.memory.lora_rank
    if plan.adapter != "none":
        return shape.lora_parameters(1, plan.config.memory.lora_targets) + 2 * rank * shape.layers * len(shape.linears)
    return _factored(shape)


def _factored(shape: ModelShape) -> int:
    linear = shape.layers * sum(rows + columns for rows, columns in shape.linears.values())
    vocabularies = 1 if shape.tied else 2
    return linear + vocabularies * (shape.vocabulary + shape.hidden) + (2 * shape.layers + 1) * shape.hidden
