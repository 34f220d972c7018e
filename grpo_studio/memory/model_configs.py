"""The config.json of a run's model, found without loading it and, for those of the presets, without a network."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grpo_studio import hub, hub_asking, model_files
from grpo_studio.catalog import locate
from grpo_studio.config import BUILTIN_MODEL, ModelSettings
from grpo_studio.errors import ModelError
from grpo_studio.gguf_files import GgufFacts, read_gguf
from grpo_studio.memory.closed_forms import ModelShape
from grpo_studio.settings import PACKAGE_DIR, Settings

FOLDER = PACKAGE_DIR / "model_configs"
"""Files of published models, each as its owner publishes it, by `slug_of` the model's id."""
PUBLISHED_AS = {BUILTIN_MODEL: "HuggingFaceTB/SmolLM2-135M-Instruct"}
GGUF_FAMILIES = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
"""GGUF architectures whose head says all that a config does, and transformers' names for them."""


def slug_of(model_id: str) -> str:
    """The name of a model's packaged file: `owner--name`, in lower case as the Hub compares ids."""
    return PUBLISHED_AS.get(model_id, model_id).lower().replace("/", "--")


def packaged(model_id: str) -> dict[str, Any] | None:
    """The packaged config of a model; None when there is none."""
    text = _text_of(slug_of(model_id))
    return None if text is None else dict(json.loads(text))


def config_of(model: ModelSettings, settings: Settings) -> dict[str, Any]:
    """The model's config as a mapping: of its folder or file, else the packaged one, else the Hub's.

    Raises:
        ModelError: there is no such model, its config cannot be read, or the Hub cannot be asked.
    """
    location = locate(model.id, settings.cache)
    if location.kind in ("local", "gguf") and location.ready and location.path is not None:
        return _whole(model_files.read_json(model_files.in_folder(location.path), "config.json"), model.id)
    if location.kind == "gguf" and location.file is not None:
        return config_of_gguf(read_gguf(location.file))
    if model.revision is None and (found := packaged(model.id)) is not None:
        return found
    return _whole(_of_hub(model.id, model.revision), model.id)


def config_of_gguf(head: GgufFacts) -> dict[str, Any]:
    """What a GGUF file's head says of its model, by the names of a config.

    Raises:
        ModelError: its head does not say enough for that.
    """
    family = GGUF_FAMILIES.get(head.architecture)
    if family is None:
        raise ModelError(
            f"the config of {head.path.name} ({head.architecture[:60]}) is known only once it is converted; start a "
            "run with it once, or give the model's folder"
        )

    def number(name: str) -> int | None:
        value = head.fields.get(f"{head.architecture}.{name}")
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    heads = number("attention.head_count")
    config: dict[str, Any] = {
        "model_type": family,
        "hidden_size": number("embedding_length"),
        "intermediate_size": number("feed_forward_length"),
        "num_hidden_layers": number("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": number("attention.head_count_kv") or heads,
        "max_position_embeddings": number("context_length") or 4096,
        "vocab_size": len(head.tokens),
    }
    if missing := [name for name, value in config.items() if value is None]:
        raise ModelError(f"{head.path.name} does not say its {', '.join(missing)}; fetch it again")
    if key_length := number("attention.key_length"):
        config["head_dim"] = key_length
    matrix = config["vocab_size"] * config["hidden_size"]
    config["tie_word_embeddings"] = not _has_two_vocabulary_matrices(config, head.parameters, matrix)
    return config


def _has_two_vocabulary_matrices(config: Mapping[str, Any], parameters: int, matrix: int) -> bool:
    """Whether the head is a matrix of its own: told by the count of numbers, which the layers alone do not explain."""
    tied = ModelShape.of({**config, "tie_word_embeddings": True}).parameters
    return parameters - tied > matrix // 2


def _of_hub(repo_id: str, revision: str | None) -> dict[str, Any]:
    """From the Hub's cache here, else fetched: one small file."""
    cached = hub.cached_file(repo_id, "config.json", revision)
    if cached is not None:
        return model_files.read_json(model_files.in_folder(cached.parent), "config.json")
    from huggingface_hub import hf_hub_download

    try:
        seconds = hub_asking.TIMEOUT_SECONDS
        path = Path(hf_hub_download(repo_id, "config.json", revision=revision, etag_timeout=seconds))
    except Exception as error:  # the boundary to the Hub's libraries, which raise many kinds
        raise hub_asking.failure(error, repo_id, "model", revision) from error
    return model_files.read_json(model_files.in_folder(path.parent), path.name)


def _whole(config: dict[str, Any], model_id: str) -> dict[str, Any]:
    if not isinstance(config.get("model_type"), str):
        raise ModelError(f"the config.json of {model_id} names no model_type; fetch or save the model again")
    return config


@functools.lru_cache(maxsize=64)
def _text_of(slug: str) -> str | None:
    path = FOLDER / f"{slug}.json"
    names = {entry.name for entry in FOLDER.iterdir()}
    return path.read_text(encoding="utf-8") if path.name in names else None
