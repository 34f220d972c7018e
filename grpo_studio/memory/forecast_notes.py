"""What a person should know of a forecast: assumptions, rules of thumb, what is missing. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from grpo_studio.memory.phase_bytes import RESERVE_NOTE
from grpo_studio.memory.plan import ASSUMED_PROMPT, Counts, Plan
from grpo_studio.memory.resident import has_reference_model
from grpo_studio.memory.rollout_bytes import vllm_pool, vllm_sleeps


def notes_of(plan: Plan, counts: Counts, prompt_known: bool) -> Iterator[str]:
    """Notes in the order in which they matter."""
    lengths = f"a step whose prompts have {plan.prompt_tokens:,} tokens and whose completions all reach "
    yield lengths + f"{plan.completion_tokens:,}: shorter ones need less"
    if 0 < plan.shape.positions < plan.tokens:
        yield (
            f"the model is made for {plan.shape.positions:,} tokens, and prompt and completion may have "
            f"{plan.tokens:,}: use a smaller algorithm.max_completion_length or shorter prompts"
        )
    if not prompt_known:
        yield f"prompts are taken to have {ASSUMED_PROMPT} tokens; give the longest one's for a closer forecast"
    if not plan.on_gpu:
        yield "tensors alone, as on a CPU: no card was given, so nothing is added for an allocator's reserve"
    else:
        yield RESERVE_NOTE
    if plan.adapter == "qlora":
        yield (
            "QLoRA: linear layers in NF4 with double quantization, 4.127 bits a number; bitsandbytes leaves "
            "embeddings, head and norms in 16 bits"
        )
    yield from _engine_notes(plan, counts)
    if plan.strategy != "none":
        yield (
            f"the shares of {plan.strategy} over {plan.config.world_size} cards are a forecast from documented rules: "
            "it was measured on no cards yet"
        )
    if has_reference_model(plan):
        yield "beta is above 0 and there is no adapter, so a second model is held as the reference"


def _engine_notes(plan: Plan, counts: Counts) -> Iterator[str]:
    engine = plan.config.rollout.engine
    if engine == "vllm_server":
        yield "vLLM's server is on other devices: its memory is not counted here"
    elif engine == "vllm_colocate":
        if plan.card is None:
            yield "without a card vLLM's pool counts as its weights and the cache of all completions: the least"
        elif vllm_pool(plan, counts) < counts.parameters * plan.weight_bytes // plan.config.rollout.tensor_parallel:
            yield "vLLM's share of the card does not hold its weights, so it would not start: raise rollout.gpu_memory"
        elif not vllm_sleeps(plan):
            yield f"vLLM holds its {plan.config.rollout.gpu_memory:.0%} of the card all through the step"
    elif plan.extra("use_transformers_continuous_batching"):
        yield "continuous batching pages its cache: the KV cache is counted as if every completion were whole at once"
