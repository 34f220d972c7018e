"""Which column holds the question and which the gold: as set, else guessed by name. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grpo_studio.config import ColumnSettings
from grpo_studio.data.rows import Row
from grpo_studio.errors import ColumnError

NO_COLUMN = "-"
"""Written for `columns.answer` when no column holds a gold answer."""
ROWS_LOOKED_AT = 1000
PROMPT_NAMES = ("prompt", "question", "problem")
ANSWER_NAMES = ("answer", "solution", "ground_truth", "gold")


@dataclass(frozen=True)
class ColumnMapping:
    """How the columns of a data set are used.

    Args:
        columns: all that were found, in their order; fields of mappings by dotted names (extra_info.answer).
        prompt: the column of the question, or None when it is not known.
        answer: the column of the gold answer, or None when there is none or it is not known.
        prompt_candidates, answer_candidates: columns whose name says that they could be it.
        gold_form: "gsm8k" when golds stand after `####`, else "text".
        renamed: columns of a reserved name, and the name under which verifiers get them.
    """

    columns: tuple[str, ...]
    prompt: str | None
    answer: str | None
    prompt_candidates: tuple[str, ...] = ()
    answer_candidates: tuple[str, ...] = ()
    gold_form: str = "text"
    renamed: Mapping[str, str] = field(default_factory=dict)


def map_columns(rows: Sequence[Row], settings: ColumnSettings, source: str) -> ColumnMapping:
    """The mapping for these first rows of a source.

    Raises:
        ColumnError: a column that is set is not there, none or several could be the prompt, or several could be the
            gold. Its `field` names the setting, its `mapping` what was found.
    """
    found = tuple(dict.fromkeys(str(name) for name in itertools.chain.from_iterable(rows[:ROWS_LOOKED_AT])))
    prompts = tuple(name for name in found if name.lower() in PROMPT_NAMES)
    answers = tuple(name for name in found if name.lower() in ANSWER_NAMES)
    prompt = settings.prompt or (prompts[0] if len(prompts) == 1 else None)
    answer = settings.answer or (answers[0] if len(answers) == 1 else None)
    mapping = ColumnMapping(found, prompt, None if answer == NO_COLUMN else answer, prompts, answers)
    listed = f"(columns found: {', '.join(found[:20])})"
    for role, column in (("prompt", prompt), ("answer", mapping.answer)):
        if column is not None and column not in found:
            raise ColumnError(
                f"{source} has no column {column!r} for the {role} {listed}; set dataset.columns.{role} to one of them",
                f"dataset.columns.{role}",
                mapping,
            )
    if prompt is None:
        raise ColumnError(
            f"{source} has no column for the prompt that is known by its name {listed}; "
            "set dataset.columns.prompt to one of them",
            "dataset.columns.prompt",
            mapping,
        )
    return mapping
