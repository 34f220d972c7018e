"""Which number format a run loads its weights in."""

from __future__ import annotations

import torch

from grpo_studio.config import ModelSettings


def fast_bfloat16() -> bool:
    """Whether this device multiplies bfloat16 matrices with its own instructions.

    A CPU without them (no AVX-512) falls back to scalar loops: the backward pass of a 135 M model took over two
    minutes in bfloat16 on one, and under ten seconds in float32.
    """
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def effective_dtype(model: ModelSettings) -> str:
    """The format that the weights are loaded in: as set, else bfloat16 where it is fast and float32 where it is not."""
    if model.dtype == "mixed":
        return "float32"
    return model.dtype or ("bfloat16" if fast_bfloat16() else "float32")


def autocasts(model: ModelSettings) -> bool:
    """Whether matrices are multiplied in bfloat16 by autocast."""
    return model.dtype == "mixed" or (torch.cuda.is_available() and effective_dtype(model) == "bfloat16")
