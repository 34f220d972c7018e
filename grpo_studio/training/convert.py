"""Turn a GGUF file into a folder that transformers loads: once, whole or not at all. Built-in models travel so, too."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers.processors import TemplateProcessing
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_studio.catalog import (
    CONVERTED_MARK,
    BuiltinModel,
    ModelLocation,
    converted_folder,
    fetch,
    gguf_folder,
    sha256_of,
)
from grpo_studio.errors import ModelError
from grpo_studio.gguf_files import GgufFacts, read_gguf
from grpo_studio.progress import Progress
from grpo_studio.shown import shown

EXACT_TYPES = {0, 1}
"""GGUF's numbers for float32 and float16: what they hold is kept whole, in float32."""


@dataclass(frozen=True)
class _Source:
    """A GGUF file, how to name it to a person, and what marks the folder made of it as whole.

    `eos_token` and `pad_token` are None where the file's own are right.
    """

    file: Path
    id: str
    title: str
    mark: str
    eos_token: str | None = None
    pad_token: str | None = None


def ensure_converted(model: BuiltinModel, cache: Path, progress: Progress | None = None) -> Path:
    """The folder of a built-in model, fetched and converted when it is not there yet.

    Raises:
        ModelError: it cannot be fetched, or the cache cannot be written.
    """
    folder = converted_folder(model, cache)
    if (folder / CONVERTED_MARK).is_file():
        return folder
    return _ensure(_built_in(model, fetch(model, cache, progress)), folder, _convert, progress)


def ensure_gguf_converted(location: ModelLocation, cache: Path, progress: Progress | None = None) -> Path:
    """The folder made of a local GGUF file, converted when that was not done for the file as it is now.

    Raises:
        ModelError: the file holds no model that can be turned back, or the cache cannot be written.
    """
    assert location.file is not None, "a location of kind gguf has a file"
    folder = gguf_folder(location.file, cache)
    return _ensure(_local(location), folder, _convert, progress)


def ensure_tokenizer(location: ModelLocation, model: BuiltinModel | None = None) -> Path:
    """The folder of the tokenizer alone, from a GGUF file that was not converted yet; the whole one when it was.

    Raises:
        ModelError: the file holds no tokenizer that can be turned back, or the cache cannot be written.
    """
    assert location.path is not None, "only a Hub model has no folder"
    assert location.file is not None, "nothing was fetched"
    if (location.path / CONVERTED_MARK).is_file():
        return location.path
    source = _local(location) if model is None else _built_in(model, location.file)
    return _ensure(source, location.path.with_name(f"{location.path.name}-tokenizer"), _convert_tokenizer, None)


def _built_in(model: BuiltinModel, file: Path) -> _Source:
    return _Source(file, model.id, model.title, model.sha256, model.eos_token, model.pad_token)


def _local(location: ModelLocation) -> _Source:
    assert location.file is not None, "a location of kind gguf has a file"
    return _Source(location.file, location.id, location.file.name, str(location.file))


def _ensure(source: _Source, folder: Path, convert: Callable[[_Source, Path], None], progress: Progress | None) -> Path:
    if (folder / CONVERTED_MARK).is_file():
        return folder
    report = progress or (lambda what, share: None)
    report(f"converting {source.title}", 0.1)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".convert-", dir=folder.parent))
        try:
            convert(source, staging)
            files = {path.name: sha256_of(path) for path in sorted(staging.iterdir())}
            (staging / CONVERTED_MARK).write_text(json.dumps({"source": source.mark, "files": files}, indent=1))
            report(f"converting {source.title}", 0.9)
            _publish(staging, folder)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            f"cannot convert {source.id} in {folder.parent}: {error}; "
            "free space there or set GRPO_STUDIO_CACHE to another folder"
        ) from error
    report(f"converting {source.title}", 1.0)
    return folder


def _convert(source: _Source, folder: Path) -> None:
    """Write safetensors, tokenizer and generation settings.

    A model loaded from GGUF counts as quantized and refuses to be saved, so its weights go into a fresh one.
    """
    facts = read_gguf(source.file)
    dtype = torch.float32 if facts.types <= EXACT_TYPES else torch.bfloat16
    _require_space(source, folder, facts.parameters * dtype.itemsize)
    tokenizer = _tokenizer(source, facts)
    try:
        loaded = AutoModelForCausalLM.from_pretrained(
            source.file.parent, gguf_file=source.file.name, dtype=dtype, trust_remote_code=False
        )
        config = loaded.config
        config._name_or_path = source.id
        if hasattr(config, "quantization_config"):
            del config.quantization_config
        fresh = AutoModelForCausalLM.from_config(config, dtype=dtype)
        fresh.load_state_dict(loaded.state_dict(), strict=True)
    except Exception as error:  # the boundary to transformers and gguf, which raise many kinds
        raise _cannot(source, error) from error
    fresh.generation_config = loaded.generation_config
    ends = [tokenizer.eos_token_id, *(tokenizer.convert_tokens_to_ids(token) for token in facts.end_tokens)]
    ends = list(dict.fromkeys(ends)) if source.eos_token is None else ends[:1]
    fresh.config.eos_token_id, fresh.config.pad_token_id = ends[0], tokenizer.pad_token_id
    fresh.config.bos_token_id = tokenizer.bos_token_id
    fresh.generation_config.eos_token_id = ends if len(ends) > 1 else ends[0]
    fresh.generation_config.pad_token_id = tokenizer.pad_token_id
    fresh.generation_config.bos_token_id = tokenizer.bos_token_id
    fresh.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _convert_tokenizer(source: _Source, folder: Path) -> None:
    _tokenizer(source, read_gguf(source.file)).save_pretrained(folder)


def _tokenizer(source: _Source, facts: GgufFacts) -> Any:
    """The tokenizer with the special tokens that the file itself names.

    The converter of transformers takes other tokens for them, <|im_start|> as the end token say.
    """
    eos = source.eos_token or facts.token("eos")
    if eos is None:
        raise ModelError(f"{source.title} names no end token (tokenizer.ggml.eos_token_id); give another GGUF file")
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            source.file.parent, gguf_file=source.file.name, trust_remote_code=False
        )
    except Exception as error:  # the boundary to transformers and tokenizers
        raise _cannot(source, error) from error
    tokenizer.eos_token = eos
    tokenizer.pad_token = source.pad_token or facts.token("padding") or eos
    if source.eos_token is None:
        tokenizer.bos_token, tokenizer.unk_token = facts.token("bos"), facts.token("unknown")
        tokenizer.chat_template = facts.chat_template
        tokenizer.clean_up_tokenization_spaces = False  # made for other kinds of tokenizer; transformers warns of it
        _begin_as_told(tokenizer, facts)
    return tokenizer


def _begin_as_told(tokenizer: Any, facts: GgufFacts) -> None:
    """Put the begin token before plain text where the file says so, and nowhere else."""
    told = facts.fields.get("tokenizer.ggml.add_bos_token")
    if tokenizer.bos_token is None or not isinstance(told, bool):
        return
    bos = tokenizer.bos_token
    if told != (tokenizer("a")["input_ids"][:1] == [tokenizer.bos_token_id]):
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single=f"{bos} $A" if told else "$A",
            pair=f"{bos} $A $B" if told else "$A $B",
            special_tokens=[(bos, tokenizer.bos_token_id)] if told else [],
        )


def _cannot(source: _Source, error: Exception) -> ModelError:
    reason = f"{type(error).__name__}: {shown(str(error), 200)}"
    return ModelError(
        f"cannot turn {source.title} back into weights and a tokenizer: {reason}; give a folder or a Hub id of it"
    )


def _require_space(source: _Source, folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelError(
            f"{source.title} takes {needed / 1e9:.1f} GB when it is converted, and {folder.parent} has "
            f"{free / 1e9:.1f} GB left; free space there or set GRPO_STUDIO_CACHE to another folder"
        )


def _publish(staging: Path, folder: Path) -> None:
    """Rename into place; when another process was quicker, its folder stands."""
    os.chmod(staging, 0o755)
    try:
        staging.rename(folder)
    except OSError:
        if not (folder / CONVERTED_MARK).is_file():
            raise
