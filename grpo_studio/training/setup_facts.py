"""What a run really is, told once the model is wrapped for training: device, precision, sizes, processes, wrapper."""

from __future__ import annotations

from typing import Any

import torch

from grpo_studio import data
from grpo_studio.absent_metrics import absent_metrics
from grpo_studio.config import RunConfig
from grpo_studio.store.writer import RunWriter
from grpo_studio.training.precision import fast_bfloat16
from grpo_studio.training.sharding import require_wrapped
from grpo_studio.training.trainer import StudioTrainer
from grpo_studio.versions import of_this_process

FINEST_BFLOAT16_STEP = 6e-5
"""Half the distance of neighbouring bfloat16 numbers from 1/64 to 1/32; Adam's steps are about the learning rate."""


def tell_setup(writer: RunWriter, config: RunConfig, trainer: StudioTrainer, splits: data.DataSplits) -> None:
    """Record the facts and what is worth a warning.

    Raises:
        ConfigError: fewer processes, or another wrapper, than were asked for.
    """
    shared = require_wrapped(config.scale.strategy, config.world_size, trainer)
    facts = _facts(config, trainer, splits) | shared | config.derived()
    total, trainable, dtype = facts["parameters"], facts["trainable_parameters"], facts["dtype"]
    multiplied = ", multiplied in bfloat16" if config.model.dtype == "mixed" else ""
    message = f"{total / 1e6:.1f} M parameters in {dtype}{multiplied} on {trainer.args.device}"
    if trainable < total:
        message += f", {trainable / 1e6:.2f} M of them trained"
    if shared["world_size"] > 1:
        message += f", {shared['world_size']} processes, {shared['wrapper']}"
    writer.event("setup", message, data=facts)
    writer.event("absent_metrics", "metrics that this run does not have", data=absent_metrics(config))
    _warn(writer, config, dtype)
    if splits.dropped:
        message = f"{splits.dropped} rows have no usable prompt and were left out"
        writer.event("rows_dropped", message, level="warning")


def _facts(config: RunConfig, trainer: StudioTrainer, splits: data.DataSplits) -> dict[str, Any]:
    total, trainable = _counts(trainer.model)
    return {
        "device": str(trainer.args.device),
        "dtype": str(trainer.model.dtype).removeprefix("torch."),
        "parameters": total,
        "trainable_parameters": trainable,
        "loss_backend": config.memory.loss_backend,
        "adapter": config.memory.adapter,
        "rollout_engine": config.rollout.engine,
        "skips_dead_groups": trainer.skips_dead,
        "train_rows": len(splits.train),
        "held_out_rows": len(splits.held_out),
        "card": card_of(trainer.args.device),
        "versions": of_this_process(),
    }


def _warn(writer: RunWriter, config: RunConfig, dtype: str) -> None:
    """What of these settings is slow or coarse here."""
    if dtype == "bfloat16" and not fast_bfloat16():
        slow = "bfloat16 runs by scalar loops on this device, many times slower than float32; leave model.dtype empty"
        writer.event("slow_precision", slow, level="warning")
    rate = config.algorithm.learning_rate
    if dtype == "bfloat16" and config.memory.adapter == "none" and rate < FINEST_BFLOAT16_STEP:
        coarse = (
            f"weights of usual size change by {FINEST_BFLOAT16_STEP:.0e} or not at all in bfloat16, and the learning "
            f"rate is {rate:g}: many updates are rounded away; use model.dtype=mixed or an adapter"
        )
        writer.event("coarse_updates", coarse, level="warning")
    if config.memory.adapter == "qlora" and not torch.cuda.is_available():
        writer.event("slow_quantization", "4-bit weights on a CPU are slow: a try, not a training", level="warning")


def card_of(device: torch.device) -> str | None:
    """The name of the device as its maker gives it, so that a run's price can be told on any machine; None on a CPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else None


def _counts(model: Any) -> tuple[int, int]:
    """All parameters and the trainable ones, also where they are packed in 4 bits or lie on other processes."""
    if hasattr(model, "get_nb_trainable_parameters"):
        trainable, total = model.get_nb_trainable_parameters()
        return int(total), int(trainable)
    sizes = [(getattr(p, "ds_numel", p.numel()), p.requires_grad) for p in model.parameters()]
    return sum(size for size, _ in sizes), sum(size for size, trains in sizes if trains)
