"""The greatest moments of a rollout by transformers: prefill, and the last tokens of completions that are all full.

The tokens between are left out: the KV cache is lengthened by as many zeros, and decoding goes on behind them. So the
cache, the attention mask, the sampling and its logits have their full size, and it takes seconds.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers.cache_utils import DynamicLayer
from trl.models.utils import unwrap_model_for_generation

FIRST_TOKENS = 2
"""Tokens that are sampled behind the prompt: the first of prefill's logits, the second with the cache."""
LAST_TOKENS = 4
"""Tokens that are sampled with the cache at its full length."""


def rehearse_rollout(trainer: Any, prompts: torch.Tensor, mask: torch.Tensor) -> str:
    """Sample as TRL does for its generation batch; returns a note when the cache could not be lengthened, else "".

    Args:
        prompts, mask: (N, P) for the N completions of this process, padded on the left.
    """
    length = trainer.max_completion_length
    with (
        unwrap_model_for_generation(
            trainer.model_wrapped,
            trainer.accelerator,
            gather_deepspeed3_params=trainer.args.ds3_gather_for_generation,
            generation_kwargs=trainer.generation_kwargs,
            gradient_checkpointing_kwargs=trainer.args.gradient_checkpointing_kwargs,
        ) as model,
        torch.no_grad(),
        trainer._dist.summon_full_params(trainer.model_wrapped, recurse=False),
    ):
        first = min(FIRST_TOKENS, length)
        cache = _decode(trainer, model, prompts, mask, first)
        last = min(LAST_TOKENS, length - first)
        if last == 0:
            return ""
        if not lengthen(cache, length - first - last):
            return f"the cache of this model cannot be lengthened: of each completion {first} tokens were sampled"
        filler = prompts[:, -1:].expand(-1, length - last)
        ids, seen = torch.cat([prompts, filler], 1), torch.cat([mask, torch.ones_like(filler)], 1)
        _decode(trainer, model, ids, seen, last, cache)
    return ""


def _decode(trainer: Any, model: Any, ids: Any, mask: Any, count: int, cache: Any = None) -> Any:
    """Sample `count` tokens, no fewer; returns the cache."""
    settings = copy.deepcopy(trainer.generation_config)
    settings.update(max_new_tokens=count, min_new_tokens=count, return_dict_in_generate=True)
    more = {} if cache is None else {"past_key_values": cache}
    return model.generate(input_ids=ids, attention_mask=mask, generation_config=settings, **more).past_key_values


def lengthen(cache: Any, count: int) -> bool:
    """Append so many tokens of zeros to each layer that grows; False when the cache is of another kind."""
    layers = getattr(cache, "layers", None)
    if not layers or not any(isinstance(layer, DynamicLayer) for layer in layers):
        return False
    for layer in layers:
        if count and isinstance(layer, DynamicLayer):
            keys, values = layer.keys, layer.values
            layer.update(*(each.new_zeros(*each.shape[:2], count, each.shape[3]) for each in (keys, values)))
    return True
