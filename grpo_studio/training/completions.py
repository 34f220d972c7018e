"""Let a model complete prompts in one batch, padded on the left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import GenerationConfig

from grpo_studio.data import Sample
from grpo_studio.training.tokenization import render


def complete(
    model: Any,
    tokenizer: Any,
    samples: Sequence[Sample],
    generation: GenerationConfig,
    template_arguments: Mapping[str, Any],
    synced: bool = False,
) -> list[list[int]]:
    """Token ids of one completion a sample, each up to and with its first end token.

    With `synced` several processes go on until all are done.
    """
    prompts = [render(tokenizer, sample.messages, template_arguments) for sample in samples]
    inputs = tokenizer(
        prompts,
        return_tensors="pt",
        padding=True,
        padding_side="left",
        add_special_tokens=tokenizer.chat_template is None,
    ).to(model.device)
    with torch.no_grad():  # tensors of inference mode would stay in the buffers that FSDP makes at its first forward
        output = model.generate(**inputs, generation_config=generation, synced_gpus=synced)
    return [_until_end(row, generation.eos_token_id) for row in output[:, inputs["input_ids"].shape[1] :].tolist()]


def _until_end(ids: list[int], eos_token_ids: Sequence[int]) -> list[int]:
    for place, token in enumerate(ids):
        if token in eos_token_ids:
            return ids[: place + 1]
    return ids
