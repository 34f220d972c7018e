"""A row as a run uses it: chat messages, the gold answer, and all columns for the verifiers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grpo_studio.config import DatasetSettings
from grpo_studio.data.mapping import ColumnMapping
from grpo_studio.data.reserved import own_columns
from grpo_studio.data.row_faults import prompt_of
from grpo_studio.data.rows import Row, cell


@dataclass(frozen=True)
class Sample:
    """One question as a run uses it: chat messages, the gold answer, and all columns for the verifiers.

    `row` is its number in the data set, from 1; 0 where it has none.
    """

    messages: tuple[Mapping[str, str], ...]
    question: str
    answer: Any
    columns: Mapping[str, Any]
    row: int = 0


def to_sample(row: Row, settings: DatasetSettings, mapping: ColumnMapping, number: int = 0) -> Sample | None:
    """The row as chat messages and gold, or None when `row_faults` finds a fatal fault.

    The system prompt of the settings replaces the data's own; there is never more than one.
    """
    prompt = prompt_of(row, settings, mapping)
    if not prompt.usable:
        return None
    text = prompt.question
    if settings.prompt_template is not None:
        # One pass: a question that holds the words {prompt} itself keeps them.
        text = settings.prompt_template.replace("{prompt}", text)
    messages = [*prompt.before, {"role": "user", "content": text}]
    if settings.system_prompt is not None:
        turns = [message for message in messages if message["role"] != "system"]
        messages = [{"role": "system", "content": settings.system_prompt}] * bool(settings.system_prompt) + turns
    columns = own_columns(row, mapping.renamed, mapping.prompt, mapping.answer)
    if mapping.answer is not None:
        columns["answer"] = cell(row, mapping.answer)
    return Sample(tuple(messages), text, columns.get("answer"), columns, number)
