"""Settings of the algorithm: sampling, loss, optimizer. A part of `config.RunConfig`."""

from __future__ import annotations

from typing import Any, Literal

from grpo_studio import hints
from grpo_studio.declaration import Finite, Section, setting

CLIPPED_LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
"""Loss types that clip the ratio from both sides."""
CISPO_CLAMP = 5.0
"""Bound of the ratio that ScaleRL (arXiv 2510.13786) trains cispo with."""


class AlgorithmSettings(Section):
    prompts_per_step: int = setting(
        4, "Prompts a step", "Different prompts sampled for each step.", main=True, ge=1, le=65_536
    )
    group_size: int = setting(
        8,
        "Group size G",
        "Completions sampled for each prompt. Small: noisy baseline; large: more sampling.",
        main=True,
        ge=2,
        le=4096,
        hints=hints.GROUP_SIZE,
    )
    steps: int = setting(
        100,
        "Steps",
        "Optimizer steps; each samples new groups unless iterations are above 1.",
        main=True,
        ge=1,
        le=10_000_000,
    )
    learning_rate: Finite = setting(
        1e-5,
        "Learning rate",
        "Largest step size of the optimizer. Full fine-tuning: 1e-6 to 5e-5.",
        main=True,
        gt=0,
        le=1,
        hints=hints.LEARNING_RATE,
    )
    lr_schedule: Literal["constant", "linear", "cosine", "constant_with_warmup"] = setting(
        "constant", "Schedule", "How the learning rate moves over the run."
    )
    loss_type: Literal["grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo"] = setting(
        "dapo",
        "Loss type",
        "How token losses are clipped and averaged, by TRL's names.",
        main=True,
        hints=hints.LOSS_TYPE,
    )
    beta: Finite = setting(
        0.0,
        "KL weight beta",
        "Weight of the KL divergence to the starting model. 0: none, and no reference model in memory.",
        ge=0,
        le=100,
        hints=hints.BETA,
    )
    epsilon: Finite = setting(0.2, "Clip epsilon", "Lower clip bound of the ratio: 1 - epsilon.", ge=0, le=100)
    epsilon_high: Finite | None = setting(
        None,
        "Clip epsilon, high",
        "Upper clip bound: 1 + this; for cispo the bound itself. Empty: epsilon, for cispo 5.",
        ge=0,
        le=100,
        hints=hints.EPSILON_HIGH,
    )
    scale_rewards: Literal["group", "batch", "none"] = setting(
        "group",
        "Scale rewards",
        "Divide advantages by the standard deviation of the group, of the batch, or not at all.",
        hints=hints.SCALE_REWARDS,
    )
    num_iterations: int = setting(1, "Iterations mu", "Optimizer passes over each batch of completions.", ge=1, le=64)
    importance_sampling_level: Literal["token", "sequence"] = setting(
        "token", "Ratio level", "Ratio to the sampling policy per token (GRPO) or per sequence (GSPO)."
    )
    mask_truncated: bool = setting(
        False, "Mask truncated", "Leave completions that were cut off at the length limit out of the loss."
    )
    delta: Finite | None = setting(
        None, "Delta", "Second upper bound of the ratio (two-sided clipping). Empty: none.", gt=1, le=1000
    )
    temperature: Finite = setting(
        1.0, "Temperature", "Randomness of sampling; at 0 all completions of a group are equal.", gt=0, le=10
    )
    top_p: Finite = setting(
        1.0, "Top-p", "Sample from the smallest set of tokens with this much probability.", gt=0, le=1
    )
    top_k: int = setting(0, "Top-k", "Sample from the k likeliest tokens. 0: all.", ge=0)
    min_p: Finite | None = setting(
        None, "Min-p", "Leave out tokens below this share of the likeliest one's probability.", ge=0, le=1
    )
    max_completion_length: int = setting(
        256,
        "Longest completion",
        "Tokens after which a completion is cut off.",
        main=True,
        ge=1,
        le=1_000_000,
    )
    max_grad_norm: Finite = setting(
        1.0, "Gradient clip", "Gradients are scaled down to this norm. 0: no clipping.", ge=0, le=1e6
    )
    optimizer: Literal["adamw_torch", "adafactor", "sgd"] = setting(
        "adamw_torch", "Optimizer", "By the names of transformers."
    )
    warmup_ratio: Finite = setting(
        0.0, "Warm-up", "Share of the steps in which the learning rate rises to its full value.", ge=0, le=1
    )
    seed: int = setting(1, "Seed", "Same seed, same machine: the same run.", main=True, ge=0, le=2**31 - 1)
    extra: dict[str, Any] = setting(
        {},
        "More of TRL",
        "Other fields of TRL's GRPOConfig by their own names, such as {entropy_coef: 0.01}; checked against the "
        "installed version.",
    )
