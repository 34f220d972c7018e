"""A run's adapter merged into its base model, as a folder of plain weights.

Beside weights in 4 bits the adapter learned on what these stand for, so they are dequantized and it is merged into
those: a base model that was never quantized would not do what training saw.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel

from grpo_studio.checkpoints import Checkpoint
from grpo_studio.config import RunConfig
from grpo_studio.errors import ModelError
from grpo_studio.settings import Settings
from grpo_studio.shown import shown
from grpo_studio.training.checkpoint_model import load_model


def save_merged(
    config: RunConfig,
    settings: Settings,
    checkpoint: Checkpoint,
    folder: Path,
    dtype: str,
    tell: Callable[[str], None],
) -> None:
    """Write the merged model, its tokenizer and generation settings to a folder. The sum is made in float32.

    Args:
        dtype: number format of the weights that are written, such as bfloat16.

    Raises:
        ModelError: base model or adapter cannot be read, or the merge is not possible.
    """
    model, tokenizer = _with_plain_weights(config, settings, checkpoint, tell)
    tell("merging the adapter")
    try:
        with torch.no_grad():
            merged = model.float().merge_and_unload(safe_merge=True).to(getattr(torch, dtype))
    except (RuntimeError, ValueError) as error:  # not finite, or no memory
        raise ModelError(
            f"cannot merge {checkpoint.name}: {shown(str(error), 200)}; export the adapter instead"
        ) from error
    _end_where_the_run_did(merged, tokenizer)
    tell("saving the merged weights")
    merged.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _with_plain_weights(
    config: RunConfig, settings: Settings, checkpoint: Checkpoint, tell: Callable[[str], None]
) -> tuple[Any, Any]:
    """The model with its adapter on weights that are not packed."""
    if config.memory.adapter != "qlora":
        return load_model(config, settings, checkpoint, tell)
    base, tokenizer = load_model(config, settings, None, tell)
    tell("dequantizing the base model")
    plain = base.dequantize()
    plain.config.__dict__.pop("quantization_config", None)
    return PeftModel.from_pretrained(plain, str(checkpoint.path)).eval(), tokenizer


def _end_where_the_run_did(model: Any, tokenizer: Any) -> None:
    """Completions end at the tokenizer's end token, too: a chosen chat template may have brought its own."""
    known = model.generation_config.eos_token_id
    ends = known if isinstance(known, list) else [] if known is None else [known]
    ends = list(dict.fromkeys([*ends, tokenizer.eos_token_id]))
    model.generation_config.eos_token_id = ends if len(ends) > 1 else ends[0]
    if model.generation_config.pad_token_id is None:
        model.generation_config.pad_token_id = tokenizer.pad_token_id
