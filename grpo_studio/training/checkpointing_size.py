"""How many bytes a checkpoint will take, asked before the first of them is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grpo_studio.checkpoints import whole_checkpoints
from grpo_studio.store.folder import RunFolder

MARGIN = 0.05
"""Of what is reckoned: names, file systems' own blocks."""
FIRST = 16_000_000
"""Bytes on top while no checkpoint tells what a tokenizer and the small files take."""
ZERO_OPTIMIZER = 12
"""Bytes a trainable parameter takes in DeepSpeed's own files: float32 weight and two moments (arXiv 1910.02054)."""


def needed_bytes(trainer: Any, folder: RunFolder, resumable: bool) -> int:
    """Room for weights and, to resume from, the optimizer; at least what the newest one of its kind takes."""
    saved = [one for one in whole_checkpoints(folder) if one.manifest.resumable == resumable]
    reckoned = _weights(trainer) + (_optimizer(trainer) if resumable else 0)
    at_least = saved[-1].bytes if saved else reckoned + FIRST
    return int(max(reckoned, at_least) * (1 + MARGIN))


def _weights(trainer: Any) -> int:
    """Of a model with an adapter only that is saved."""
    adapter = hasattr(trainer.accelerator.unwrap_model(trainer.model), "peft_config")
    return sum(_size(one) for one in trainer.model.parameters() if one.requires_grad or not adapter)


def _optimizer(trainer: Any) -> int:
    if trainer.is_deepspeed_enabled:
        trained = (one for one in trainer.model.parameters() if one.requires_grad)
        return ZERO_OPTIMIZER * sum(getattr(one, "ds_numel", one.numel()) for one in trained)
    return sum(_size(one) for one in _tensors(trainer.optimizer.state.values()))


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, dict):
            yield from _tensors(value.values())


def _size(tensor: Any) -> int:
    return int(getattr(tensor, "ds_numel", tensor.numel())) * int(tensor.element_size())
