"""Tokens of the prompts of a scan. The tokenizer is loaded meanwhile: its libraries alone take seconds."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from grpo_studio import model_files
from grpo_studio.catalog import locate
from grpo_studio.chat_templates import PLAIN, template_text
from grpo_studio.config import RunConfig
from grpo_studio.data import Sample
from grpo_studio.errors import ConfigError, DataError, ModelError
from grpo_studio.hub import require_readable
from grpo_studio.libraries import load_libraries
from grpo_studio.model_facts import facts_of
from grpo_studio.problem import Problem, problem_of
from grpo_studio.scan_verdict import context_of
from grpo_studio.settings import Settings

_SILENT = re.compile(r"\{#.*?#\}|\{%-?\s*(?:for|endfor|if|elif|else|endif)\b.*?%\}", re.DOTALL)
"""What writes nothing in a chat template."""


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


def roomy_context(config: RunConfig, settings: Settings, samples: Sequence[Sample]) -> int | None:
    """The context of a model on this disk, where it holds all prompts and a completion even at a token for each byte.

    None where that is not sure, and the tokens have to be counted: which takes libraries that load for seconds.
    """
    try:
        location = locate(config.model.id, settings.cache)
        if location.path is None or not location.ready or not location.path.is_dir():
            return None
        find = model_files.in_folder(location.path)
        template = _template(config, find)
        context = model_files.context_length(model_files.read_json(find, "config.json"))
    except (ConfigError, ModelError):
        return None  # told when the tokenizer is loaded
    smallest = context_of(config, context)
    if smallest is None:
        return None
    # Whatever a template writes of its own comes once a message and once around them, at most.
    own = len(_SILENT.sub("", template))
    longest = max(
        (own * (len(sample.messages) + 1) + sum(map(_bytes, sample.messages)) for sample in samples),
        default=0,
    )
    return context if longest + config.algorithm.max_completion_length <= smallest else None


def _template(config: RunConfig, find: model_files.Find) -> str:
    choice = config.model.chat_template
    if choice is None:
        return model_files.chat_template(find, model_files.read_json(find, "tokenizer_config.json")) or ""
    return "" if choice == PLAIN else template_text(choice)


def _bytes(message: Mapping[str, str]) -> int:
    return sum(len(text.encode("utf-8", "surrogatepass")) + 2 for text in message.values())


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
        if location.kind == "builtin" and location.file is None and not location.ready:
            return None
        if location.kind == "hub":
            require_readable(location.id, "model", model.revision)
        load_libraries()
        from grpo_studio.training.model_source import tokenizer_source
        from grpo_studio.training.tokenization import load_tokenizer

        tokenizer = load_tokenizer(
            tokenizer_source(model.id, self._settings.cache), model.revision, model.chat_template
        )
        return tokenizer, facts_of(model, self._settings).context_length

    def _parts(self, tokenizer: Any, samples: Sequence[Sample]) -> Any:
        load_libraries()
        from grpo_studio.training.tokenization import count_in_parts

        return count_in_parts(tokenizer, samples, self._config.algorithm.extra.get("chat_template_kwargs"))
