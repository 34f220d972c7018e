"""What transformers makes of a model's config, without its weights."""

from __future__ import annotations

import functools

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from grpo_studio.model_files import CONTEXT_NAMES


def context_length(source: str, revision: str | None = None) -> int | None:
    """Tokens that a model's positions reach, by its config; None when that does not say or cannot be read."""
    try:
        config = AutoConfig.from_pretrained(source, revision=revision, trust_remote_code=False).get_text_config()
    except Exception:  # the boundary to transformers: what is wrong with the model is told when it is loaded
        return None
    values = (getattr(config, name, None) for name in CONTEXT_NAMES)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


@functools.lru_cache(maxsize=16)
def counted_parameters(source: str, revision: str | None = None) -> int | None:
    """Numbers in a model's weights, tied ones once, counted on a device without memory; None when that fails."""
    try:
        config = AutoConfig.from_pretrained(source, revision=revision, trust_remote_code=False)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        return sum(parameter.numel() for parameter in model.parameters())
    except Exception:  # the boundary to transformers, which raises many kinds
        return None


def is_language_model(model_type: str) -> bool:
    """Whether transformers itself knows a causal language model of this type."""
    return model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
