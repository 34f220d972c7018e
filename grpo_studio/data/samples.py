"""A row as a run uses it: chat messages, the gold answer, and all columns for the verifiers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grpo_studio.config import DatasetSettings
from grpo_studio.data.mapping import ColumnMapping
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
    """The row as chat messages and gold, or None when its prompt is missing or empty."""
    value = None if mapping.prompt is None else cell(row, mapping.prompt)
    before, question = split_messages(value)
    if not question.strip():
        return None
    text = question if settings.prompt_template is None else settings.prompt_template.replace("{prompt}", question)
    system = settings.system_prompt
    if system is None:
        system = next((message["content"] for message in before if message["role"] == "system"), None)
    turns = [message for message in before if message["role"] != "system"]
    messages = ([{"role": "system", "content": system}] if system else []) + turns + [{"role": "user", "content": text}]
    columns = {str(key): cell for key, cell in row.items()}
    if mapping.answer is not None:
        columns["answer"] = cell(row, mapping.answer)
    return Sample(tuple(messages), text, columns.get("answer"), columns, number)


def split_messages(value: Any) -> tuple[list[dict[str, str]], str]:
    """Earlier chat messages and the last user message of a prompt cell; plain text is one user message."""
    if isinstance(value, str):
        return [], value
    if isinstance(value, bool) or value is None:
        return [], ""
    if isinstance(value, int | float):
        return [], str(value)
    if isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value):
        messages = [
            {"role": str(item.get("role", "user")), "content": str(item.get("content") or "")} for item in value
        ]
        if messages and messages[-1]["role"] == "user":
            return messages[:-1], messages[-1]["content"]
    return [], ""
