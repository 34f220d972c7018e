"""Prompts of a run rendered as its model will see them, before anything is started."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from grpo_studio import data, preflight
from grpo_studio.catalog import BUILTIN_MODELS, locate
from grpo_studio.config import RunConfig
from grpo_studio.errors import ModelError
from grpo_studio.settings import Settings


@dataclass(frozen=True)
class RenderedPrompt:
    """One prompt with its special tokens, its length in tokens, and the gold answer as text."""

    text: str
    tokens: int
    answer: str | None


def preview(
    config: RunConfig, settings: Settings, count: int = 3, load: preflight.Loader = data.load
) -> list[RenderedPrompt]:
    """The first `count` training prompts of the data set that `load` reads.

    Raises:
        StudioError: the data or the tokenizer cannot be read, or a built-in model was not fetched yet.
    """
    from grpo_studio.training.tokenization import render, token_count

    location = locate(config.model.id, settings.cache)
    if location.kind == "builtin" and not location.ready:
        model = BUILTIN_MODELS[location.id]
        raise ModelError(
            f"{model.title} is fetched when a run starts ({model.wheel_bytes / 1e6:.0f} MB, once); prompts show then"
        )
    tokenizer = _tokenizer(str(location.path or location.id), config.model.revision)
    samples = load(config.dataset).train[:count]
    rendered = [(render(tokenizer, sample.messages), sample.answer) for sample in samples]
    return [
        RenderedPrompt(text, token_count(tokenizer, text), None if answer is None else str(answer))
        for text, answer in rendered
    ]


@functools.lru_cache(maxsize=4)
def _tokenizer(source: str, revision: str | None) -> Any:
    from grpo_studio.training.tokenization import load_tokenizer

    return load_tokenizer(source, revision)
