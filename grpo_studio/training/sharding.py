"""How several processes share a model: what the trainer is asked for, and a look at what it really did.

Keys are those of transformers 5.17.0 (`TrainingArguments.fsdp_config`, `deepspeed`) and accelerate 1.15.0. Asked for
FSDP on a CPU, accelerate wraps the model in DDP without a word: hence `require_wrapped`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch.distributed.fsdp import FSDPModule

from grpo_studio.engine_settings import MemorySettings, ScaleSettings
from grpo_studio.errors import ConfigError

WRAPPERS = {
    "none": ("none",),
    "ddp": ("DistributedDataParallel",),
    "fsdp": ("FSDPModule", "FullyShardedDataParallel"),
    "zero2": ("DeepSpeedEngine",),
    "zero3": ("DeepSpeedEngine",),
}
"""Classes that wrap the model for a strategy; "none" stands for no wrapper."""
ZERO_STAGES = {"zero2": 2, "zero3": 3}


def sharding_arguments(scale: ScaleSettings, memory: MemorySettings) -> dict[str, Any]:
    """Keyword arguments of TRL's GRPOConfig for a strategy; they go over those of the same name for one process."""
    if scale.strategy == "ddp":
        return {"ddp_find_unused_parameters": False}  # every loss backend uses all that it trains
    if scale.strategy == "fsdp":
        return _fsdp(memory)
    if scale.strategy in ZERO_STAGES:
        return {"deepspeed": _deepspeed(ZERO_STAGES[scale.strategy])}
    return {}


def keep_outputs_exact(model: Any) -> None:
    """Let what leaves an FSDP2 model stay in float32.

    accelerate has it cast to bfloat16, which makes steps of 0.03 nats of a log-prob of -8, and noise of the ratios.
    """
    if isinstance(model, FSDPModule):
        state = model._get_fsdp_state()
        state._mp_policy = dataclasses.replace(state._mp_policy, output_dtype=torch.float32)


def require_wrapped(strategy: str, world_size: int, trainer: Any) -> dict[str, Any]:
    """Compare what wraps the trainer's model, once training has begun, with what was asked for.

    Args:
        strategy: `scale.strategy`.
        world_size: training processes on all machines.
        trainer: a transformers Trainer; its `model_wrapped` and `accelerator` are read.

    Returns:
        `world_size` and `wrapper` (the name of a class, or "none"), as they really are.

    Raises:
        ConfigError: they are not what was asked for.
    """
    processes, wrapper = trainer.accelerator.num_processes, _wrapper_of(trainer.model_wrapped)
    if processes != world_size:
        raise ConfigError(
            f"{world_size} processes were asked for, and the trainer counts {processes}; start the run by train or "
            "the app, so that every process is told of the others"
        )
    if wrapper not in WRAPPERS[strategy]:
        found = "not wrapped" if wrapper == "none" else f"wrapped in {wrapper}"
        raise ConfigError(
            f"strategy {strategy} was asked for, and the model is {found}; use the strategy {_strategy_of(wrapper)}, "
            f"or a device and packages that can do {strategy}"
        )
    stage = _zero_stage(trainer.model_wrapped)
    if strategy in ZERO_STAGES and stage != ZERO_STAGES[strategy]:
        raise ConfigError(f"strategy {strategy} was asked for, and DeepSpeed runs stage {stage}; use zero{stage}")
    return {"world_size": processes, "wrapper": wrapper}


def _fsdp(memory: MemorySettings) -> dict[str, Any]:
    """FSDP2, one unit a transformer layer; whole weights are saved, so that a checkpoint loads anywhere.

    FSDP recomputes activations itself: the Trainer's own gradient checkpointing would gather each layer once more.
    """
    return {
        "gradient_checkpointing": False,
        "fsdp": True,
        "fsdp_config": {
            "version": 2,
            "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "reshard_after_forward": True,
            "state_dict_type": "FULL_STATE_DICT",
            "activation_checkpointing": memory.gradient_checkpointing,
        },
    }


def _deepspeed(stage: int) -> dict[str, Any]:
    """A DeepSpeed configuration in which the trainer fills in every "auto"; the optimizer is the trainer's own."""
    zero: dict[str, Any] = {
        "stage": stage,
        "overlap_comm": True,
        "contiguous_gradients": True,
        "reduce_bucket_size": "auto",
    }
    if stage == 3:
        zero |= {
            "stage3_prefetch_bucket_size": "auto",
            "stage3_param_persistence_threshold": "auto",
            "stage3_gather_16bit_weights_on_model_save": True,
        }
    return {
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "bf16": {"enabled": "auto"},
        "zero_optimization": zero,
    }


def _wrapper_of(model: Any) -> str:
    """FSDP2 does not wrap: it makes the model an FSDPModule, so the whole ancestry of its class is looked at."""
    model = getattr(model, "_orig_mod", model)  # torch.compile puts itself around all others
    names = {cls.__name__ for cls in type(model).__mro__}
    known = (name for wrappers in WRAPPERS.values() for name in wrappers)
    return next((name for name in known if name in names), "none")


def _strategy_of(wrapper: str) -> str:
    return next(strategy for strategy, wrappers in WRAPPERS.items() if wrapper in wrappers)


def _zero_stage(engine: Any) -> int | None:
    stage = getattr(engine, "zero_optimization_stage", None)
    return int(stage()) if callable(stage) else None
