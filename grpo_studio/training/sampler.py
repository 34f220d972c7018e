"""A model as a run has it at its start, ready to sample: located, converted, loaded on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig, set_seed

from grpo_studio.config import RunConfig
from grpo_studio.data import Sample
from grpo_studio.errors import ConfigError, ModelError
from grpo_studio.shown import shown
from grpo_studio.training.completions import complete
from grpo_studio.training.model_source import model_source
from grpo_studio.training.precision import effective_dtype
from grpo_studio.training.tokenization import load_tokenizer

ROWS_ON_CPU = 32
ROWS_ON_GPU = 128


class Sampler:
    """Completes prompts with the sampling settings of a run. `rows` is how many completions fit in one batch."""

    def __init__(self, config: RunConfig, cache: Path, tell: Callable[[str], None]) -> None:
        """Load the model.

        Raises:
            ModelError: it cannot be found, fetched or read.
            ConfigError: transformers refuses the sampling settings.
        """
        source = model_source(config, cache, tell)
        tell(f"loading {config.model.id}")
        self._tokenizer = load_tokenizer(source, config.model.revision, config.model.chat_template)
        self._model = _load(source, config)
        self._template_arguments = config.algorithm.extra.get("chat_template_kwargs") or {}
        self._generation = self._settings(config)
        self.rows = ROWS_ON_GPU if torch.cuda.is_available() else ROWS_ON_CPU
        set_seed(config.algorithm.seed)

    def complete(self, samples: Sequence[Sample]) -> list[tuple[str, int]]:
        """Text and number of tokens of a completion for each of the first samples, as many as the memory holds.

        Raises:
            ModelError: not even one fits.
        """
        while True:
            try:
                rows = samples[: self.rows]
                ids = complete(self._model, self._tokenizer, rows, self._generation, self._template_arguments)
                break
            except torch.cuda.OutOfMemoryError as error:
                if self.rows == 1:
                    raise ModelError(
                        "the device has too little memory to sample one completion; free some of it, or use a smaller "
                        "model or algorithm.max_completion_length"
                    ) from error
            self.rows //= 2
            torch.cuda.empty_cache()
        texts = self._tokenizer.batch_decode(ids, skip_special_tokens=True)
        return [(text, len(tokens)) for text, tokens in zip(texts, ids, strict=True)]

    def _settings(self, config: RunConfig) -> GenerationConfig:
        """As TRL makes them for its own rollouts."""
        algorithm, tokenizer = config.algorithm, self._tokenizer
        ends = self._model.generation_config.eos_token_id
        ends = [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
        settings: dict[str, Any] = {
            "do_sample": True,
            "max_new_tokens": algorithm.max_completion_length,
            "temperature": algorithm.temperature,
            "top_p": algorithm.top_p,
            "top_k": algorithm.top_k,
            "min_p": algorithm.min_p,
            "repetition_penalty": algorithm.extra.get("repetition_penalty", 1.0),
            "pad_token_id": tokenizer.pad_token_id,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": list(dict.fromkeys([tokenizer.eos_token_id, *ends])),
        }
        try:
            return GenerationConfig(**settings | (algorithm.extra.get("generation_kwargs") or {}), disable_compile=True)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"transformers refuses these sampling settings: {error}; change them") from error


def _load(source: str, config: RunConfig) -> Any:
    settings = config.model
    try:
        model = AutoModelForCausalLM.from_pretrained(
            source,
            revision=settings.revision,
            trust_remote_code=False,
            dtype=effective_dtype(settings),
            attn_implementation=settings.attn_implementation,
        )
        return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    except Exception as error:  # the libraries raise many kinds, from OSError to SafetensorError
        reason = shown(str(error), 300)
        raise ModelError(
            f"cannot load the model {settings.id}: {type(error).__name__}: {reason}; give a causal language model "
            "that fits in the memory"
        ) from error
