"""A model as a run has it at its start, ready to sample: located, converted, loaded on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from transformers import set_seed

from grpo_studio.config import RunConfig
from grpo_studio.data import Sample
from grpo_studio.errors import ModelError
from grpo_studio.training.checkpoint_model import load_weights
from grpo_studio.training.completions import complete
from grpo_studio.training.generation import end_tokens, sampled
from grpo_studio.training.model_source import model_source
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
        self._model = load_weights(source, config, f"the model {config.model.id}", config.model.revision)
        self._template_arguments = config.algorithm.extra.get("chat_template_kwargs") or {}
        self._generation = sampled(config, self._tokenizer, end_tokens(self._model, self._tokenizer))
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
