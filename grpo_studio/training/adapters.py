"""LoRA and QLoRA: what gets an adapter, and what the trainer is told.

LoRA: Hu et al., arXiv 2106.09685; QLoRA with NF4 and double quantization: Dettmers et al., arXiv 2305.14314.
"""

from __future__ import annotations

from typing import Any

import torch
from peft import LoraConfig
from peft.tuners.tuners_utils import BaseTunerLayer
from transformers import AutoConfig, AutoModelForCausalLM, BitsAndBytesConfig
from transformers.pytorch_utils import Conv1D

from grpo_studio.engine_settings import MemorySettings
from grpo_studio.errors import ConfigError
from grpo_studio.lora_targets import ALL_LINEAR, target_names, unknown_targets


def adapter_arguments(memory: MemorySettings, dtype: str) -> dict[str, Any]:
    """Keyword arguments of GRPOTrainer: `peft_config`, and `quantization_config` for QLoRA; none without an adapter."""
    if memory.adapter == "none":
        return {}
    names = target_names(memory.lora_targets)
    arguments: dict[str, Any] = {
        "peft_config": LoraConfig(
            task_type="CAUSAL_LM",
            r=memory.lora_rank,
            lora_alpha=memory.lora_alpha,
            lora_dropout=memory.lora_dropout,
            target_modules=ALL_LINEAR if names is None else names,
        )
    }
    if memory.adapter == "qlora":
        arguments["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=getattr(torch, dtype),
        )
    return arguments


def require_targets(source: str, revision: str | None, memory: MemorySettings) -> None:
    """Refuse LoRA targets that the model does not have, before its weights are loaded.

    Raises:
        ConfigError: a name matches no linear module; the message lists those that there are.
    """
    names = target_names(memory.lora_targets)
    if memory.adapter == "none" or names is None:
        return
    known = linear_modules(source, revision)
    if unknown := unknown_targets(names, known):
        raise ConfigError(
            f"memory.lora_targets names {', '.join(unknown)}, which {source} does not have; "
            f"use {ALL_LINEAR}, or some of {', '.join(known)}"
        )


def linear_modules(source: str, revision: str | None = None) -> list[str]:
    """Last names of a model's linear modules but its head, in order of their first appearance; loads no weights."""
    config = AutoConfig.from_pretrained(source, revision=revision, trust_remote_code=False)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    head = model.get_output_embeddings()
    found = (
        name.rpartition(".")[2]
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear | Conv1D) and module is not head
    )
    return list(dict.fromkeys(found))


def adapter_is_off(model: Any) -> bool:
    """Whether a model's adapters are switched off just now: it then is its own reference."""
    first = next((module for module in model.modules() if isinstance(module, BaseTunerLayer)), None)
    return first is not None and bool(first.disable_adapters)
