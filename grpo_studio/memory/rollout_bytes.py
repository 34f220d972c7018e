"""What sampling takes: the cache of keys and values, the sampler's scores, the pass over the prompts; or vLLM's pool.

Read in trl 1.16.0 and transformers 5.17.0: one process samples all its completions of a step at once; a DynamicCache
layer grows by a copy of itself; scores of the whole vocabulary are kept in float32, more than once. Pure.
"""

from __future__ import annotations

from grpo_studio.memory.plan import Counts, Plan
from grpo_studio.memory.sharding_bytes import gathered_for_rollout

SCORES = 12
"""Bytes a token of the vocabulary for each completion: scores in float32, the probabilities of this turn and of the one
before, and multinomial's noise, less what is freed by then (`GenerationMixin._sample`, torch.multinomial)."""
SCORES_OF_LAST = 8
"""The same during a forward pass: scores and probabilities of the turn before."""
SORTED_SCORES = 34
"""The same while top-p sorts them: sorted scores, their places in int64, probabilities summed up, masks, and what is
still there of the turn before."""


def rollout_parts(plan: Plan, counts: Counts) -> dict[str, int]:
    """Bytes that sampling adds to what is resident."""
    engine = plan.config.rollout.engine
    if engine == "vllm_server":
        return {}
    if engine == "vllm_colocate":
        return {"vllm_pool": vllm_pool(plan, counts)}
    gathered, workspace = gathered_for_rollout(plan, counts), _weight_copies(plan, counts)
    prefill = {
        "kv_cache": kv_bytes(plan, plan.prompt_tokens),
        "activations": _prefill_activations(plan),
        "other": gathered + workspace,
    }
    scores = plan.completions * plan.shape.vocabulary
    forward = {
        "kv_cache": kv_bytes(plan, plan.tokens) + _growing_layer(plan),
        "logits_and_loss": scores * SCORES_OF_LAST,
        "activations": plan.completions * _activation_bytes(plan),
        "other": gathered + workspace,
    }
    drawing = {
        "kv_cache": kv_bytes(plan, plan.tokens),
        "logits_and_loss": scores * _score_bytes(plan),
        "other": gathered,
    }
    return max(prefill, forward, drawing, key=lambda parts: sum(parts.values()))


def kv_bytes(plan: Plan, tokens: int) -> int:
    """Keys and values of `tokens` tokens of every completion that one process samples at once."""
    return plan.completions * tokens * plan.shape.kv_bytes_per_token(_key_bytes(plan), plan.compute_bytes)


def vllm_pool(plan: Plan, counts: Counts) -> int:
    """vLLM's share of the card; without a card its weights and the cache of all completions, which is the least."""
    if plan.card is not None:
        return int(plan.config.rollout.gpu_memory * plan.card.bytes)
    weights = counts.parameters * plan.weight_bytes // plan.config.rollout.tensor_parallel
    return weights + kv_bytes(plan, plan.tokens)


def vllm_sleeps(plan: Plan) -> bool:
    """Whether vLLM gives its pool back while the trainer works (TRL's vllm_enable_sleep_mode)."""
    return bool(plan.extra("vllm_enable_sleep_mode", False))


def _key_bytes(plan: Plan) -> int:
    """Under autocast over float32 weights the rotation takes keys back to float32."""
    return plan.weight_bytes


def _growing_layer(plan: Plan) -> int:
    """The greatest that one layer holds twice: its keys while they grow, or both repeated for grouped queries.

    With padded prompts attention gets a mask, and transformers then repeats keys and values for each query head.
    """
    layer = kv_bytes(plan, plan.tokens) // plan.shape.layers
    repeats = plan.shape.heads // plan.shape.kv_heads
    grown = layer * repeats if repeats > 1 else layer // 2
    mixed = plan.autocasts and plan.weight_bytes == 4  # attention then turns float32 keys to bfloat16
    return grown * 4 // 3 if mixed else grown


def _score_bytes(plan: Plan) -> int:
    algorithm = plan.config.algorithm
    logits = 4 if plan.autocasts else plan.weight_bytes  # accelerate turns an autocast model's output to float32
    warmed = 4 if algorithm.temperature != 1.0 else 0
    if algorithm.top_p < 1 or algorithm.min_p:
        return logits + SORTED_SCORES + warmed
    return logits + SCORES + (4 if warmed or algorithm.top_k else 0)


def _activation_bytes(plan: Plan) -> int:
    """The most that one token's pass through one layer holds: in its gated MLP, in attention, or in a norm."""
    shape, size = plan.shape, plan.compute_bytes
    mlp = 3 * shape.intermediate * size
    attention = (3 * shape.heads + 4 * shape.kv_heads) * shape.head_dim * size
    return max(mlp, attention, 2 * 4 * shape.hidden) + 4 * shape.hidden * size


def _prefill_activations(plan: Plan) -> int:
    mask = plan.prompt_tokens  # a byte for each pair of tokens
    return plan.completions * plan.prompt_tokens * (_activation_bytes(plan) + mask)


def _weight_copies(plan: Plan, counts: Counts) -> int:
    """Copies of weights in the format of multiplication: of one matrix, or of all that are trained under autocast.

    Autocast keeps its copies of trained weights until the pass ends; 4-bit matrices are unpacked one at a time.
    """
    if plan.adapter == "qlora":
        return counts.largest_linear * plan.compute_bytes
    if not plan.autocasts or plan.weight_bytes == plan.compute_bytes:
        return 0
    if plan.adapter == "none":
        return counts.parameters * plan.compute_bytes
    return max(counts.largest_linear, counts.vocabulary) * plan.compute_bytes
