"""Tokens of the prompts of a scan. The tokenizer is loaded meanwhile: its libraries alone take seconds."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from grpo_studio.catalog import locate
from grpo_studio.config import RunConfig
from grpo_studio.data import Sample
from grpo_studio.errors import ConfigError, DataError, ModelError
from grpo_studio.hub import require_readable
from grpo_studio.problem import Problem, problem_of
from grpo_studio.settings import Settings


@dataclass(frozen=True)
class Tokens:
    """Tokens of each prompt and the model's context.

    `counts` is None when they are not known: `problem` says why no prompt can be rendered, or `note` that the model was
    not fetched yet.
    """

    counts: array[int] | None = None
    context: int | None = None
    note: str | None = None
    problem: Problem | None = None


class TokenCounter:
    """Loads the tokenizer of a run from the moment that it is made; use it as a context manager."""

    def __init__(self, config: RunConfig, settings: Settings) -> None:
        self._config, self._settings = config, settings
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="tokenizer")
        self._loading = self._pool.submit(self._load)

    def __enter__(self) -> TokenCounter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def count(self, samples: Sequence[Sample], tell: Callable[[float], None]) -> Tokens:
        """Count; `tell` is called with the share that is done and ends it by raising."""
        tell(0.0)
        counts: array[int] = array("q")
        context = None
        try:
            loaded = self._loading.result()
            if loaded is None:
                return Tokens(note="how long the prompts are is known once the model is fetched")
            tokenizer, context = loaded
            for part in self._parts(tokenizer, samples):
                counts.extend(part)
                tell(len(counts) / len(samples))
        except (ConfigError, DataError) as error:  # the chosen template cannot be used, or it refuses a row
            return Tokens(context=context, problem=problem_of("model.chat_template", error))
        except ModelError as error:
            return Tokens(problem=problem_of("model.id", error))
        return Tokens(counts, context)

    def _load(self) -> tuple[Any, int | None] | None:
        """Tokenizer and context; None for a built-in model that was not fetched yet."""
        model = self._config.model
        location = locate(model.id, self._settings.cache)
        if location.kind == "builtin" and not location.ready:
            return None
        if location.kind == "hub":
            require_readable(location.id, "model", model.revision)
        from grpo_studio.training.model_files import context_length
        from grpo_studio.training.tokenization import load_tokenizer

        source = str(location.path or location.id)
        return load_tokenizer(source, model.revision, model.chat_template), context_length(source, model.revision)

    def _parts(self, tokenizer: Any, samples: Sequence[Sample]) -> Any:
        from grpo_studio.training.tokenization import count_in_parts

        return count_in_parts(tokenizer, samples, self._config.algorithm.extra.get("chat_template_kwargs"))
