"""A run's model, at one of its checkpoints or as it was before training, ready to complete prompts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from grpo_studio.checkpoints import Checkpoint
from grpo_studio.config import RunConfig
from grpo_studio.errors import ModelError
from grpo_studio.settings import Settings
from grpo_studio.shown import shown
from grpo_studio.training.adapters import adapter_arguments
from grpo_studio.training.model_source import model_source
from grpo_studio.training.precision import effective_dtype
from grpo_studio.training.tokenization import load_tokenizer

ADAPTER = "adapter_config.json"
"""The file that tells an adapter's checkpoint from one of whole weights."""


def load_model(
    config: RunConfig, settings: Settings, checkpoint: Checkpoint | None, tell: Callable[[str], None]
) -> tuple[Any, Any]:
    """Model and tokenizer on the device, in evaluation mode; None is the model as it was before training.

    An adapter's checkpoint becomes a PeftModel on the run's base model, which is quantized where training had it so.
    The number format, the chat template and the end token are those that the run trains with.

    Raises:
        ModelError: base model or checkpoint cannot be found, fetched or read, lacks weights, or does not fit.
        ConfigError: the run's chat template cannot be used.
    """
    disable_progress_bar()  # how far it is, is told in lines
    folder = None if checkpoint is None else checkpoint.path
    adapter = folder is not None and (folder / ADAPTER).is_file()
    source = model_source(config, settings.cache, tell)
    tokenizer = load_tokenizer(source, config.model.revision, config.model.chat_template)
    if folder is not None and not adapter:
        tell(f"loading {folder.name}")
        return load_weights(str(folder), config, f"the checkpoint {folder.name}", revision=None), tokenizer
    tell(f"loading {config.model.id}")
    model = load_weights(source, config, f"the model {config.model.id}", config.model.revision, _quantized(config))
    if folder is not None:
        tell(f"loading {folder.name}")
        model = _with_adapter(model, folder)
    return model, tokenizer


def load_weights(
    source: str, config: RunConfig, what: str, revision: str | None, quantization: dict[str, Any] | None = None
) -> Any:
    """A causal language model in the run's number format, on the device, in evaluation mode.

    Args:
        what: names it in messages.
        quantization: keyword arguments of `from_pretrained` for a quantized model.

    Raises:
        ModelError: it cannot be read, lacks weights, or does not fit.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        model, report = AutoModelForCausalLM.from_pretrained(
            source,
            revision=revision,
            trust_remote_code=False,
            dtype=effective_dtype(config.model),
            attn_implementation=config.model.attn_implementation,
            output_loading_info=True,
            **({"device_map": {"": device}, **quantization} if quantization else {}),
        )
        model = model.eval() if quantization else model.to(device).eval()
    except Exception as error:  # the libraries raise many kinds, from OSError to SafetensorError
        raise _unreadable(what, error) from error
    if missing := sorted(report["missing_keys"]):
        # transformers makes them up at random, with a warning alone
        some = f"{len(missing)} of the model's weights, such as {shown(missing[0], 100)}"
        raise ModelError(f"{what} lacks {some}; {_other(what)}")
    return model


def _quantized(config: RunConfig) -> dict[str, Any] | None:
    arguments = adapter_arguments(config.memory, effective_dtype(config.model))
    if "quantization_config" not in arguments:
        return None
    return {"quantization_config": arguments["quantization_config"]}


def _with_adapter(model: Any, folder: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Found missing adapter keys")
            return PeftModel.from_pretrained(model, str(folder)).eval()
    except Exception as error:  # as above, and the warning that weights are missing
        raise _unreadable(f"the adapter of {folder.name}", error) from error


def _unreadable(what: str, error: Exception) -> ModelError:
    if isinstance(error, torch.cuda.OutOfMemoryError):
        return ModelError(f"{what} does not fit into the free memory of the device; stop what else runs on it")
    return ModelError(f"cannot load {what}: {type(error).__name__}: {shown(str(error), 300)}; {_other(what)}")


def _other(what: str) -> str:
    if what.startswith("the model"):
        return "give a causal language model that fits in the memory"
    return "take another checkpoint of the run"
