"""Columns of a data set whose name a run gives something of its own: verifiers get them under another name. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

from grpo_studio.data.rows import Row
from grpo_studio.shown import shown_name
from grpo_studio.verifiers.contract import GIVEN_COLUMNS

RESERVED: Final = {
    **dict.fromkeys(GIVEN_COLUMNS, "given with every completion"),
    "prompt": "the question as it is asked",
    "completion_tokens": "the completion's length in tokens",
    "completion": "the text that is judged",
    "answer": "the gold answer",
    # What TRL passes to reward functions, and the place of a row among the samples.
    **dict.fromkeys(("prompts", "completions", "completion_ids"), "what was sampled"),
    **dict.fromkeys(("trainer_state", "log_extra", "log_metric", "environments"), "of the trainer itself"),
    "sample": "the row's place among the samples",
}
"""Names with what a run means by them."""


def renamed_columns(names: Iterable[str], prompt: str | None, answer: str | None) -> dict[str, str]:
    """The columns that cannot keep their name, each with a free one.

    `prompt` and `answer` are the columns that are mapped: one that is called so itself keeps its name.
    """
    known = set(names)
    renamed: dict[str, str] = {}
    for name in names:
        if _is_taken(name, prompt, answer):
            renamed[name] = free_name(name, known | set(renamed.values()))
    return renamed


def own_columns(row: Row, renamed: Mapping[str, str], prompt: str | None, answer: str | None) -> dict[str, Any]:
    """All columns of a row under the names by which verifiers get them.

    A reserved column that only later rows have is renamed as well.
    """
    columns: dict[str, Any] = {}
    for key, value in row.items():
        name = str(key)
        if name in renamed or _is_taken(name, prompt, answer):
            wanted = renamed.get(name)
            name = wanted if wanted is not None and wanted not in row else free_name(name, row)
        columns[name] = value
    return columns


def free_name(name: str, taken: Container[str]) -> str:
    """A name for a reserved column that is none of those taken."""
    wanted, number = f"dataset_{name}", 2
    while wanted in taken:
        wanted, number = f"dataset_{name}_{number}", number + 1
    return wanted


def rename_notes(renamed: Mapping[str, str]) -> list[str]:
    """What a person is told of columns that are renamed: one line each."""
    return [
        f"the column {shown_name(old)} is passed to verifiers as {shown_name(new)}: "
        f"a run gives its own '{old}' ({RESERVED[old]})"
        for old, new in renamed.items()
    ]


def _is_taken(name: str, prompt: str | None, answer: str | None) -> bool:
    if name == "prompt":
        return prompt != "prompt"
    if name == "answer":
        return answer != "answer"
    return name in RESERVED
