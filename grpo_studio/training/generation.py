"""How a run's model is asked to go on with a prompt: sampled as in its rollouts, or greedily."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import GenerationConfig

from grpo_studio.config import RunConfig
from grpo_studio.errors import ConfigError


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """The tokens that end a completion: the tokenizer's, and those that the model's own settings name."""
    ends = model.generation_config.eos_token_id
    ends = [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
    return list(dict.fromkeys([tokenizer.eos_token_id, *ends]))


def sampled(config: RunConfig, tokenizer: Any, ends: Sequence[int]) -> GenerationConfig:
    """As TRL makes them for its own rollouts.

    Raises:
        ConfigError: transformers refuses these sampling settings.
    """
    algorithm = config.algorithm
    settings: dict[str, Any] = {
        **_common(config, tokenizer, ends),
        "do_sample": True,
        "temperature": algorithm.temperature,
        "top_p": algorithm.top_p,
        "top_k": algorithm.top_k,
        "min_p": algorithm.min_p,
    }
    try:
        return GenerationConfig(**settings | (algorithm.extra.get("generation_kwargs") or {}), disable_compile=True)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"transformers refuses these sampling settings: {error}; change them") from error


def greedy(config: RunConfig, tokenizer: Any, ends: Sequence[int]) -> GenerationConfig:
    """The likeliest token each time, with the run's greatest length and repetition penalty."""
    return GenerationConfig(do_sample=False, **_common(config, tokenizer, ends))


def _common(config: RunConfig, tokenizer: Any, ends: Sequence[int]) -> dict[str, Any]:
    return {
        "max_new_tokens": config.algorithm.max_completion_length,
        "repetition_penalty": config.algorithm.extra.get("repetition_penalty", 1.0),
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": list(ends),
    }


@contextmanager
def own_randomness(device: torch.device, *parts: int) -> Iterator[None]:
    """Within, torch draws from a generator seeded by `parts`; afterwards it goes on as if nothing had been drawn."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(int.from_bytes(digest, "big") >> 1)
        yield
