"""The first prompts of a run rendered as its model will see them, before anything is started."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_studio import data
from grpo_studio.config import RunConfig
from grpo_studio.data.gold_forms import gold_short
from grpo_studio.errors import DataError
from grpo_studio.libraries import load_libraries
from grpo_studio.prompt_parts import Parts, clipped, visible
from grpo_studio.settings import Settings

ROWS_READ = 200
LONGEST_TEXT = 20_000
LONGEST_ANSWER = 2_000


@dataclass(frozen=True)
class RenderedPrompt:
    """One prompt as it reaches the model.

    Args:
        text: with its special tokens; of a long one the beginning.
        parts: the same as [text, kind] for showing: kind is text, special (a token that is no text) or control (a
            character that does not show, written as an escape); of a long prompt the beginning and the end.
        tokens: tokens of the whole prompt.
        answer: the gold as text, and `gold` its short form.
        row: its number in the data set, from 1.
    """

    text: str
    parts: Parts
    tokens: int
    answer: str | None
    gold: str | None
    row: int = 0


def preview(config: RunConfig, settings: Settings, count: int = 3) -> list[RenderedPrompt]:
    """The first `count` rows with a usable prompt; only the first rows of the data set are read.

    Raises:
        StudioError: the data or the tokenizer cannot be read, or a built-in model was not fetched yet.
    """
    rows = data.head(config.dataset, ROWS_READ)
    mapping = data.map_columns(rows, config.dataset.columns, config.dataset.source)
    found = (data.to_sample(row, config.dataset, mapping, number) for number, row in enumerate(rows, start=1))
    samples = [sample for _, sample in zip(range(count), filter(None, found), strict=False)]
    if not samples:
        raise DataError(
            f"none of the first {len(rows)} rows of {config.dataset.source} has a usable prompt in the column "
            f"{mapping.prompt!r}; set dataset.columns.prompt to the column of the questions"
        )
    tokenizer = tokenizer_of(config, settings)
    arguments = config.algorithm.extra.get("chat_template_kwargs")
    return [_rendered(tokenizer, sample, arguments, mapping.gold_form) for sample in samples]


def _rendered(tokenizer: Any, sample: data.Sample, arguments: Any, gold_form: str) -> RenderedPrompt:
    load_libraries()
    from grpo_studio.training.prompt_tokens import prompt_tokens
    from grpo_studio.training.tokenization import render_all

    text = render_all(tokenizer, [sample], arguments)[0]
    tokens, spans = prompt_tokens(tokenizer, text, sample.row)
    answer = None if sample.answer is None else str(sample.answer)
    gold = gold_short(sample.answer, gold_form)
    return RenderedPrompt(
        text=text[:LONGEST_TEXT],
        parts=clipped(visible(text, spans)),
        tokens=tokens,
        answer=None if answer is None else _shown(answer),
        gold=None if gold is None else _shown(gold),
        row=sample.row,
    )


def _shown(text: str) -> str:
    return "".join(part for part, _ in visible(text[:LONGEST_ANSWER], ()))


def tokenizer_of(config: RunConfig, settings: Settings) -> Any:
    """The tokenizer that the run will have, kept between calls for as long as its files stay as they are.

    Raises:
        ModelError, ConfigError: it cannot be read, or a built-in model was not fetched yet.
    """
    load_libraries()
    from grpo_studio.training.model_source import tokenizer_source

    source = tokenizer_source(config.model.id, settings.cache)
    return _tokenizer(source, config.model.revision, config.model.chat_template, _stamps(Path(source)))


def _stamps(folder: Path) -> Sequence[int]:
    """When the small files of a local model were written; empty for a Hub model, whose files do not change."""
    try:
        names = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
        return tuple(path.stat().st_mtime_ns for name in names if (path := folder / name).is_file())
    except OSError:
        return ()


@functools.lru_cache(maxsize=4)
def _tokenizer(source: str, revision: str | None, chat_template: str | None, stamps: Sequence[int]) -> Any:
    load_libraries()
    from grpo_studio.training.tokenization import load_tokenizer

    return load_tokenizer(source, revision, chat_template)
