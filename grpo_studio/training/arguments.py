"""RunConfig -> TRL's GRPOConfig: one place where the names meet."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from trl import GRPOConfig

from grpo_studio.config import RunConfig
from grpo_studio.errors import ConfigError
from grpo_studio.rollout_server import free_port
from grpo_studio.training.precision import autocasts, effective_dtype
from grpo_studio.training.sharding import sharding_arguments


def grpo_arguments(config: RunConfig, output_dir: Path) -> GRPOConfig:
    """TRL's settings for a run; checkpoints go below `output_dir`. With several processes it joins them.

    Raises:
        ConfigError: TRL or transformers refuses them.
    """
    try:
        return GRPOConfig(**grpo_settings(config, output_dir))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"TRL refuses these settings: {' '.join(str(error).split())}; change them") from error


def grpo_settings(config: RunConfig, output_dir: Path) -> dict[str, Any]:
    """The same settings as plain values by TRL's names."""
    return {
        **_algorithm(config),
        **_process(config),
        **_rollout(config),
        **_output(config, output_dir),
        **sharding_arguments(config.scale, config.memory),
        **config.algorithm.extra,
    }


def _algorithm(config: RunConfig) -> dict[str, Any]:
    algorithm = config.algorithm
    return {
        "num_generations": algorithm.group_size,
        "max_completion_length": algorithm.max_completion_length,
        "max_steps": algorithm.steps,
        "learning_rate": algorithm.learning_rate,
        "lr_scheduler_type": algorithm.lr_schedule,
        "warmup_steps": math.ceil(algorithm.warmup_ratio * algorithm.steps),
        "optim": algorithm.optimizer,
        "max_grad_norm": algorithm.max_grad_norm,
        "loss_type": algorithm.loss_type,
        "beta": algorithm.beta,
        "epsilon": algorithm.epsilon,
        "epsilon_high": config.effective_epsilon_high(),
        "delta": algorithm.delta,
        "scale_rewards": algorithm.scale_rewards,
        "num_iterations": algorithm.num_iterations,
        "importance_sampling_level": algorithm.importance_sampling_level,
        "mask_truncated_completions": algorithm.mask_truncated,
        "temperature": algorithm.temperature,
        "top_p": algorithm.top_p,
        "top_k": algorithm.top_k,
        "min_p": algorithm.min_p,
        "seed": algorithm.seed,
        "reward_weights": [reward.weight for reward in config.rewards],
    }


def _process(config: RunConfig) -> dict[str, Any]:
    dtype = effective_dtype(config.model)
    on_cpu = not torch.cuda.is_available()
    return {
        "per_device_train_batch_size": config.effective_micro_batch(),
        "gradient_accumulation_steps": config.gradient_accumulation(),
        "gradient_checkpointing": config.memory.gradient_checkpointing,
        "model_init_kwargs": {
            "dtype": dtype,
            "attn_implementation": config.model.attn_implementation,
            "revision": config.model.revision,
        },
        "use_cpu": on_cpu,
        "bf16": autocasts(config.model),
        "dataloader_pin_memory": not on_cpu,
        "remove_unused_columns": False,
    }


def _rollout(config: RunConfig) -> dict[str, Any]:
    rollout = config.rollout
    if not config.uses_vllm:
        return {}
    return {
        "use_vllm": True,
        "vllm_mode": rollout.engine.removeprefix("vllm_"),
        "vllm_importance_sampling_correction": rollout.importance_sampling_correction,
        "vllm_importance_sampling_mode": config.effective_importance_sampling_mode(),
        "vllm_gpu_memory_utilization": rollout.gpu_memory,
        "vllm_tensor_parallel_size": rollout.tensor_parallel,
        "vllm_max_model_length": rollout.max_model_length,
        "vllm_server_base_url": rollout.server_url,
        "vllm_server_timeout": rollout.server_timeout,
        "vllm_group_port": free_port(),
    }


def _output(config: RunConfig, output_dir: Path) -> dict[str, Any]:
    checkpoint, report = config.checkpoint, config.report
    return {
        "output_dir": str(output_dir),
        "save_strategy": "steps" if checkpoint.every else "no",
        "save_steps": checkpoint.every or config.algorithm.steps,
        "save_on_each_node": config.scale.machines > 1,  # each machine has a run of its own, and resumes from it
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "disable_tqdm": True,
        "report_to": report.to,
        "hub_model_id": report.hub_repo,
    }
