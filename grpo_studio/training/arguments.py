"""RunConfig -> TRL's GRPOConfig: one place where the names meet."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from trl import GRPOConfig

from grpo_studio.config import RunConfig
from grpo_studio.training.precision import effective_dtype


def grpo_arguments(config: RunConfig, output_dir: Path) -> GRPOConfig:
    """TRL's settings for a run on one process; checkpoints go below `output_dir`."""
    algorithm, checkpoint = config.algorithm, config.checkpoint
    dtype = effective_dtype(config.model)
    on_cpu = not torch.cuda.is_available()
    return GRPOConfig(
        output_dir=str(output_dir),
        per_device_train_batch_size=config.effective_micro_batch(),
        gradient_accumulation_steps=config.gradient_accumulation(),
        num_generations=algorithm.group_size,
        max_completion_length=algorithm.max_completion_length,
        max_steps=algorithm.steps,
        learning_rate=algorithm.learning_rate,
        lr_scheduler_type=algorithm.lr_schedule,
        warmup_steps=math.ceil(algorithm.warmup_ratio * algorithm.steps),
        optim=algorithm.optimizer,
        max_grad_norm=algorithm.max_grad_norm,
        loss_type=algorithm.loss_type,
        beta=algorithm.beta,
        epsilon=algorithm.epsilon,
        epsilon_high=config.effective_epsilon_high(),
        delta=algorithm.delta,
        scale_rewards=algorithm.scale_rewards,
        num_iterations=algorithm.num_iterations,
        importance_sampling_level=algorithm.importance_sampling_level,
        mask_truncated_completions=algorithm.mask_truncated,
        temperature=algorithm.temperature,
        top_p=algorithm.top_p,
        top_k=algorithm.top_k,
        min_p=algorithm.min_p,
        seed=algorithm.seed,
        reward_weights=[reward.weight for reward in config.rewards],
        gradient_checkpointing=config.memory.gradient_checkpointing,
        model_init_kwargs={
            "dtype": dtype,
            "attn_implementation": config.model.attn_implementation,
            "revision": config.model.revision,
        },
        use_cpu=on_cpu,
        bf16=not on_cpu and dtype == "bfloat16",
        save_strategy="steps" if checkpoint.every else "no",
        save_steps=checkpoint.every or algorithm.steps,
        save_total_limit=checkpoint.keep,
        logging_steps=1,
        logging_nan_inf_filter=False,
        remove_unused_columns=False,
        dataloader_pin_memory=not on_cpu,
        disable_tqdm=True,
        report_to="none",
    )
