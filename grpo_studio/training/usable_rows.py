"""The rows that a run uses, by the rules of the scan before it: those that fit the context with a completion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.data import DataSplits, Sample
from grpo_studio.data.lengths import PromptLengths, fits, prompt_lengths
from grpo_studio.data.scan import prompt_key
from grpo_studio.errors import ConfigError, DataError
from grpo_studio.problem import Problem
from grpo_studio.scan_verdict import (
    Left,
    context_of,
    few_rows_problem,
    length_problem,
    row_facts,
    too_long_note,
)
from grpo_studio.training.model_files import context_length
from grpo_studio.training.tokenization import token_counts


@dataclass(frozen=True)
class UsableRows:
    """What is left of the data set, the facts about it, and what was left out, as a person is told."""

    splits: DataSplits
    facts: dict[str, Any]
    notes: tuple[str, ...]


def usable_rows(config: RunConfig, tokenizer: Any, source: str, splits: DataSplits) -> UsableRows:
    """Leave out the rows that do not fit, held-out ones as well, or refuse them, as `dataset.too_long` says.

    Raises:
        ConfigError: rows do not fit, or have no usable prompt, and that is to stop the run; or no prompt fits at all.
        DataError: too few rows are left for one batch.
    """
    if splits.dropped and config.dataset.unusable == "stop":
        raise ConfigError(
            f"dataset.unusable: {splits.dropped:,} of {splits.rows_read:,} rows have no usable prompt; "
            "mend those rows, or set dataset.unusable=leave_out"
        )
    rows = (*splits.train, *splits.held_out)
    counts = token_counts(tokenizer, rows, config.algorithm.extra.get("chat_template_kwargs"))
    context = context_of(config, context_length(source, config.model.revision))
    lengths = prompt_lengths(counts, [sample.row for sample in rows], context, config.algorithm.max_completion_length)
    _refuse(length_problem(config, lengths, len(rows), context), ConfigError)
    train = _fitting(splits.train, counts[: len(splits.train)], lengths)
    held_out = _fitting(splits.held_out, counts[len(splits.train) :], lengths)
    left = Left(
        len({prompt_key(sample) for sample in train}),
        len(train),
        len(held_out),
        splits.dropped,
        len(rows) - len(train) - len(held_out),
        splits.dropped + len(rows),
    )
    _refuse(few_rows_problem(config, left), DataError)
    facts = {
        "dataset_rows": splits.rows_read,
        **row_facts(config, left),
        "context_length": context,
        "longest_prompt": lengths.longest,
    }
    notes = (too_long_note(lengths, len(rows)),) if left.too_long else ()
    return UsableRows(replace(splits, train=train, held_out=held_out), facts, notes)


def _fitting(samples: Sequence[Sample], counts: Sequence[int], lengths: PromptLengths) -> tuple[Sample, ...]:
    return tuple(sample for sample, count in zip(samples, counts, strict=True) if fits(count, lengths.room))


def _refuse(problem: Problem | None, kind: type[ConfigError] | type[DataError]) -> None:
    if problem is not None:
        raise kind(str(problem))
