"""The pre-flight scan of a data set: what is odd in its rows, how long its prompts are, whether its golds can be read.

`scan` reads the whole set, or the first rows of one that is streamed; it loads a tokenizer and verifiers, no model.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.data import ColumnMapping, Sample
from grpo_studio.data.lengths import PromptLengths, fits, prompt_lengths
from grpo_studio.data.scan import Finding
from grpo_studio.gold_preflight import Golds
from grpo_studio.problem import Problem
from grpo_studio.progress import Progress
from grpo_studio.scan_measure import Measured, Side, measure
from grpo_studio.scan_verdict import (
    Left,
    context_of,
    few_rows_problem,
    length_problem,
    row_facts,
    too_long_note,
    unusable_note,
    unusable_problem,
)
from grpo_studio.settings import Settings


@dataclass(frozen=True)
class ScanReport:
    """What a scan found, judged by the settings of a run.

    Args:
        rows: rows of the data set as read, before the row limit, held-out rows and filters.
        sampled: whether only the first rows of a streamed set were read.
        left_out: rows without a usable prompt, and those that do not fit when they are to be left out.
        lengths: None when the tokenizer or the data could not be read.
        problems: what stops a run.
        first: the first training rows.
        mapping: which columns were used; None when the data could not be read.
    """

    rows: int
    sampled: bool
    train_rows: int
    held_out_rows: int
    left_out: int
    findings: tuple[Finding, ...]
    lengths: PromptLengths | None
    golds: Golds
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    derived: dict[str, Any] = field(default_factory=dict)
    first: tuple[Sample, ...] | None = None
    mapping: ColumnMapping | None = None

    def as_dict(self) -> dict[str, Any]:
        """By the names that `check --json` prints."""
        return {
            "rows": self.rows,
            "sampled": self.sampled,
            "train_rows": self.train_rows,
            "held_out_rows": self.held_out_rows,
            "left_out": self.left_out,
            "findings": [finding.as_dict() for finding in self.findings],
            "lengths": None if self.lengths is None else self.lengths.as_dict(),
            "golds": self.golds.as_dicts(),
            "problems": [problem.as_dict() for problem in self.problems],
            "notes": self.notes,
            "derived": self.derived,
            "mapping": None if self.mapping is None else _columns(self.mapping),
        }


def scan(config: RunConfig, settings: Settings, progress: Progress | None = None) -> ScanReport:
    """Read the whole data set and judge it. `progress` ends the scan by raising.

    A data set that cannot be read is a problem of the report, as everything else that stops a run.
    """
    return judged(config, measure(config, settings, progress))


def judged(config: RunConfig, measured: Measured) -> ScanReport:
    """What was measured, for these settings. Pure and quick."""
    problems = [] if measured.problem is None else [measured.problem]
    if measured.train is None or measured.held_out is None:
        return ScanReport(0, False, 0, 0, 0, (), None, measured.golds, problems, list(measured.notes))
    context = context_of(config, measured.context)
    lengths = _lengths(config, measured.train, measured.held_out, context)
    train, held_out = (_fitting(config, side, lengths) for side in (measured.train, measured.held_out))
    too_long = len(measured.train) + len(measured.held_out) - len(train) - len(held_out)
    left = Left(
        len({measured.train.prompts[place] for place in train}),
        len(train),
        len(held_out),
        measured.unusable.count,
        too_long,
        measured.looked_at,
    )
    prompts = len(measured.train) + len(measured.held_out)
    rows = {} if measured.sampled else {"dataset_rows": measured.rows, **row_facts(config, left)}
    return ScanReport(
        measured.rows,
        measured.sampled,
        left.train,
        left.held_out,
        left.unusable + left.too_long,
        measured.findings,
        lengths,
        measured.golds,
        [*problems, *_problems(config, measured, lengths, left, prompts, context), *measured.golds.problems],
        [*measured.notes, *_notes(config, measured, lengths, left, prompts), *measured.golds.notes],
        rows | _length_facts(context, lengths),
        measured.first,
        measured.mapping,
    )


def _length_facts(context: int | None, lengths: PromptLengths | None) -> dict[str, int]:
    facts = {"context_length": context, "longest_prompt": None if lengths is None else lengths.longest}
    return {name: value for name, value in facts.items() if value is not None}


def _columns(mapping: ColumnMapping) -> dict[str, str | None]:
    return {"prompt": mapping.prompt, "answer": mapping.answer, "gold_form": mapping.gold_form}


def _lengths(config: RunConfig, train: Side, held_out: Side, context: int | None) -> PromptLengths | None:
    if train.tokens is None or held_out.tokens is None:
        return None
    pairs = sorted(zip((*train.numbers, *held_out.numbers), (*train.tokens, *held_out.tokens), strict=True))
    completion = config.algorithm.max_completion_length
    return prompt_lengths([tokens for _, tokens in pairs], [number for number, _ in pairs], context, completion)


def _fitting(config: RunConfig, side: Side, lengths: PromptLengths | None) -> array[int]:
    """Places of the rows that a run uses: all of them, unless those that are too long are left out."""
    room = lengths.room if lengths is not None and config.dataset.too_long == "leave_out" else None
    tokens = side.tokens
    return array("q", [place for place in range(len(side)) if tokens is None or fits(tokens[place], room)])


def _problems(
    config: RunConfig, measured: Measured, lengths: PromptLengths | None, left: Left, prompts: int, context: int | None
) -> Iterator[Problem]:
    if measured.unusable.count and config.dataset.unusable == "stop":
        yield unusable_problem(measured.unusable, measured.looked_at, measured.findings)
    too_long = length_problem(config, lengths, prompts, context)
    if too_long is not None:
        yield too_long
    few = None if measured.sampled else few_rows_problem(config, left)
    if few is not None:
        yield few


def _notes(
    config: RunConfig, measured: Measured, lengths: PromptLengths | None, left: Left, prompts: int
) -> Iterator[str]:
    if measured.unusable.count and config.dataset.unusable == "leave_out":
        yield unusable_note(measured.unusable, measured.looked_at, measured.findings)
    if lengths is not None and left.too_long:
        yield too_long_note(lengths, prompts)
    if not measured.sampled and left.held_out < config.dataset.held_out:
        yield f"{left.held_out:,} rows are held out, fewer than the {config.dataset.held_out:,} asked for"
    for finding in measured.findings:
        # Golds that are missing are told of by the verifiers that need them.
        if not finding.unusable and finding.kind != "missing_gold":
            yield str(finding)
