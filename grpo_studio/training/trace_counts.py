"""A model's own numbers, counted from its modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.pytorch_utils import Conv1D

from grpo_studio.lora_targets import target_names
from grpo_studio.memory.traced import ModelBytes, TraceRequest

ADAPTER_BYTES = 4
"""PEFT keeps adapters in float32, whatever the weights are in (`autocast_adapter_dtype`)."""


def counted(model: Any, layers: Sequence[Any], request: TraceRequest) -> ModelBytes:
    """The numbers of a model without its adapter, and of the adapter that the request gives it."""
    own = list(model.parameters())
    head = model.get_output_embeddings()
    ends = {id(one): one for one in (*_weights(model.get_input_embeddings()), *_weights(head))}
    linear = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear | Conv1D) and module is not head
    }
    lora = request.adapter != "none"
    adapter = _adapter(linear, request) if lora else []
    weights = sum(_bytes(one) for one in own)
    sizes = [module.weight.numel() for module in linear.values() if isinstance(module, torch.nn.Linear)]
    numbers = sum(one.numel() for one in own)
    return ModelBytes(
        parameters=numbers,
        trainable=sum(adapter) if lora else numbers,
        adapter_parameters=sum(adapter),
        weights=weights,
        quantizable=sum(sizes),
        largest_linear=max(sizes, default=0),
        layer=max((sum(one.numel() for one in layer.parameters()) for layer in layers), default=0),
        embeddings=sum(one.numel() for one in ends.values()),
        buffers=sum(_bytes(one) for one in model.buffers()),
        layers=len(layers),
        adapter_bytes=ADAPTER_BYTES * sum(adapter),
        trainable_bytes=ADAPTER_BYTES * sum(adapter) if lora else weights,
        largest_trainable=ADAPTER_BYTES * max(adapter, default=0) if lora else max(_bytes(one) for one in own),
    )


def _adapter(linear: dict[str, Any], request: TraceRequest) -> list[int]:
    """Numbers of each matrix of a LoRA adapter: rank times what goes into a target, and what comes out (Hu et al.,
    arXiv 2106.09685).
    """
    names = target_names(request.lora_targets)
    chosen = (
        module.weight.shape
        for path, module in linear.items()
        if names is None or any(path == name or path.endswith(f".{name}") for name in names)
    )
    return [request.lora_rank * width for shape in chosen for width in shape]


def _weights(module: Any) -> list[torch.Tensor]:
    return [] if module is None else list(module.parameters())


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
