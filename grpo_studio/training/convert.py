"""Turn a built-in model's GGUF file into a folder that transformers loads: once, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_studio.catalog import CONVERTED_MARK, BuiltinModel, Progress, converted_folder, fetch, sha256_of
from grpo_studio.errors import ModelError


def ensure_converted(model: BuiltinModel, cache: Path, progress: Progress | None = None) -> Path:
    """The folder of a built-in model, fetched and converted when it is not there yet.

    Raises:
        ModelError: it cannot be fetched, or the cache cannot be written.
    """
    folder = converted_folder(model, cache)
    if (folder / CONVERTED_MARK).is_file():
        return folder
    gguf = fetch(model, cache, progress)
    report = progress or (lambda what, share: None)
    report(f"converting {model.title}", 0.1)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".convert-", dir=folder.parent))
        try:
            _convert(model, gguf, staging)
            report(f"converting {model.title}", 0.9)
            _publish(staging, folder)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise ModelError(
            f"cannot convert {model.id} in {folder.parent}: {error}; "
            "free 1 GB there or set GRPO_STUDIO_CACHE to another folder"
        ) from error
    report(f"converting {model.title}", 1.0)
    return folder


def _convert(model: BuiltinModel, gguf: Path, folder: Path) -> None:
    """Write safetensors, tokenizer and generation settings.

    A model loaded from GGUF counts as quantized and refuses to be saved, so its weights go into a fresh one.
    """
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    tokenizer.eos_token, tokenizer.pad_token = model.eos_token, model.pad_token
    loaded = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    config = loaded.config
    config._name_or_path = model.id
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    fresh = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    fresh.load_state_dict(loaded.state_dict(), strict=True)
    fresh.generation_config = loaded.generation_config
    for settings in (fresh.config, fresh.generation_config):
        settings.eos_token_id, settings.pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
    fresh.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    files = {path.name: sha256_of(path) for path in sorted(folder.iterdir())}
    (folder / CONVERTED_MARK).write_text(json.dumps({"source": model.sha256, "files": files}, indent=1))


def _publish(staging: Path, folder: Path) -> None:
    """Rename into place; when another process was quicker, its folder stands."""
    os.chmod(staging, 0o755)
    try:
        staging.rename(folder)
    except OSError:
        if not (folder / CONVERTED_MARK).is_file():
            raise
