"""What a scan reads and counts, whatever the run makes of it: rows, prompt lengths in tokens, readable golds.

It takes a while for large sets, tells how far it is, and depends on the data, the model and the rewards alone. What
follows from it for the other settings is `scan_verdict`'s.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from grpo_studio import data
from grpo_studio.config import RunConfig
from grpo_studio.data import ColumnMapping, Sample
from grpo_studio.data.loading import open_rows
from grpo_studio.data.reserved import rename_notes
from grpo_studio.data.scan import Finding, RowScan, Tally, prompt_key, sample_findings
from grpo_studio.data.splitting import Numbered
from grpo_studio.errors import ColumnError, DataError
from grpo_studio.gold_preflight import QUICK_ROWS, SCAN_ROWS, Golds, read_golds
from grpo_studio.problem import Problem, problem_of
from grpo_studio.progress import Progress
from grpo_studio.scan_tokens import TokenCounter, Tokens, roomy_context
from grpo_studio.settings import Settings
from grpo_studio.verifier_preflight import check_rewards

STREAMED_ROWS = 10_000
"""At most so many training rows of a streamed set are read, and so many of its first rows looked at as they stand."""
FIRST_ROWS = 1000
READING, GOLDS, COUNTING = "reading rows", "reading golds", "counting tokens"


@dataclass(frozen=True)
class Side:
    """Training or held-out rows: number, prompt (equal ones have the same) and tokens of each; no texts."""

    numbers: array[int]
    prompts: array[int]
    tokens: array[int] | None

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class Measured:
    """What was read.

    Args:
        rows: rows of the data set as read, before anything is left out.
        looked_at: those of them that the row limit leaves.
        sampled: whether these are only the first rows of a set that is streamed.
        unusable: rows without a usable prompt.
        context: tokens that the model takes at once; None when that is not known.
        first: the first training rows.
        problem: why prompts cannot be rendered; or why the data set cannot be read, and then all else is empty.
    """

    rows: int = 0
    looked_at: int = 0
    sampled: bool = False
    train: Side | None = None
    held_out: Side | None = None
    unusable: Tally = field(default_factory=Tally)
    findings: tuple[Finding, ...] = ()
    golds: Golds = field(default_factory=Golds)
    context: int | None = None
    notes: tuple[str, ...] = ()
    first: tuple[Sample, ...] = ()
    mapping: ColumnMapping | None = None
    problem: Problem | None = None


def measure(
    config: RunConfig,
    settings: Settings,
    progress: Progress | None = None,
    quick: bool = False,
    count_all: bool = True,
) -> Measured:
    """Read the data set, count tokens and ask the verifiers about golds.

    A data set that cannot be read is told by `problem`. With `quick` no tokenizer is loaded and few golds are read;
    without `count_all` tokens are counted only when a prompt may be too long.
    """
    tell = progress or (lambda what, share: None)
    try:
        splits, scan, whole = _read(config, partial(tell, READING))
    except DataError as error:
        return Measured(problem=problem_of(error.field if isinstance(error, ColumnError) else "dataset.source", error))
    notes = [*splits.notes, *rename_notes(splits.mapping.renamed)]
    if not whole:
        notes.append(
            f"the data set is streamed: {len(splits.train):,} rows to train on and its first {scan.rows:,} rows as "
            "they stand were looked at, not all of it"
        )
    rows = sorted((*splits.train, *splits.held_out), key=lambda sample: sample.row)
    golds, tokens = _golds_and_tokens(config, settings, rows, tell, quick, count_all)
    notes += [tokens.note] if tokens.note else []
    by_row = {} if tokens.counts is None else dict(zip((row.row for row in rows), tokens.counts, strict=True))
    prompts: dict[tuple[str, ...], int] = {}
    return Measured(
        splits.rows_read,
        scan.rows,
        not whole,
        _side(splits.train, by_row, prompts),
        _side(splits.held_out, by_row, prompts),
        scan.unusable,
        (*scan.findings(), *sample_findings(splits.train, splits.held_out, splits.mapping)),
        golds,
        tokens.context,
        tuple(notes),
        splits.train[:FIRST_ROWS],
        splits.mapping,
        tokens.problem,
    )


def _golds_and_tokens(
    config: RunConfig, settings: Settings, rows: Sequence[Sample], tell: Progress, quick: bool, count_all: bool
) -> tuple[Golds, Tokens]:
    checked = check_rewards(config, settings, rows[:FIRST_ROWS])
    reading = partial(read_golds, settings, checked.sound, checked.registry, rows)
    roomy = None if count_all and not quick else roomy_context(config, settings, rows)
    if quick or roomy is not None:
        return reading(QUICK_ROWS if quick else SCAN_ROWS, partial(tell, GOLDS)), Tokens(context=roomy)
    with TokenCounter(config, settings) as counter:
        # Other processes read the golds while this one loads the libraries of the tokenizer.
        return reading(SCAN_ROWS, partial(tell, GOLDS)), counter.count(rows, partial(tell, COUNTING))


def _wanted(config: RunConfig) -> int | None:
    wanted = config.rows_wanted()
    return None if wanted is None else min(STREAMED_ROWS, wanted)


def _read(config: RunConfig, tell: Callable[[float], None]) -> tuple[data.DataSplits, RowScan, bool]:
    """The rows as a run gets them, a look at each as it stands in the source, and whether those were all."""
    settings = config.dataset
    looked: list[RowScan] = []

    def look(mapping: ColumnMapping, rows: Sequence[Numbered]) -> None:
        scan = RowScan(settings, mapping)
        for number, row in rows:
            scan.add(number, row)
            if number % 1000 == 0:
                tell(0.6 + 0.4 * number / len(rows))
        looked.append(scan)

    tell(0.0)
    splits = data.load(settings, _wanted(config), lambda what, share: tell(0.6 * share), look)
    if looked:
        tell(1.0)
        return splits, looked[0], True
    if settings.streaming and len(splits.train) < (config.rows_wanted() or 0) and len(splits.train) == STREAMED_ROWS:
        splits = replace(splits, notes=splits.notes[:-1])  # the last one tells that this is all that the run needs
    scan = RowScan(settings, splits.mapping)
    if data.is_made(settings.source):  # some take long to make, and none has an odd row
        scan.rows = len(splits.train) + len(splits.held_out)
        tell(1.0)
        return splits, scan, True
    # Of a stream other rows are kept than its first ones: those are read once more, as they stand.
    count = min(splits.rows_read, settings.limit or splits.rows_read, STREAMED_ROWS)
    rows = open_rows(settings).rows
    for number, row in enumerate(itertools.islice(rows, count), start=1):
        scan.add(number, row)
        if number % 1000 == 0:
            tell(0.6 + 0.4 * number / count)
    tell(1.0)
    return splits, scan, count == splits.rows_read and next(rows, None) is None


def _side(samples: Sequence[Sample], tokens: Mapping[int, int], prompts: dict[tuple[str, ...], int]) -> Side:
    return Side(
        array("q", [sample.row for sample in samples]),
        array("q", [prompts.setdefault(prompt_key(sample), len(prompts)) for sample in samples]),
        array("q", [tokens[sample.row] for sample in samples]) if tokens else None,
    )
