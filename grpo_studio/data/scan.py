"""What is odd in the rows of a data set, counted by kind with the numbers of the rows. Pure: rows in, findings out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from grpo_studio.config import DatasetSettings
from grpo_studio.data.faults import TITLES
from grpo_studio.data.mapping import ColumnMapping
from grpo_studio.data.overlap import overlapping
from grpo_studio.data.row_faults import row_faults
from grpo_studio.data.row_numbers import SHOWN, listed_rows
from grpo_studio.data.rows import Row
from grpo_studio.data.samples import Sample
from grpo_studio.data.value_kinds import ValueKinds
from grpo_studio.shown import shown, shown_name


@dataclass(frozen=True)
class Finding:
    """Rows with one kind of oddity.

    Args:
        message: what they have, and how many there are of how many.
        rows: the first of their numbers.
        example: what the first of them shows, or an empty text.
        unusable: whether those rows have no prompt to train on.
    """

    kind: str
    message: str
    count: int
    rows: tuple[int, ...]
    example: str = ""
    unusable: bool = False

    def as_dict(self) -> dict[str, Any]:
        """By the names that `check --json` prints."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}

    def __str__(self) -> str:
        return f"{self.message} ({listed_rows(self.rows, self.count, SHOWN)})"


@dataclass
class Tally:
    """Rows of one kind as they are met."""

    count: int = 0
    rows: list[int] = field(default_factory=list)
    example: str = ""

    def add(self, number: int, example: str = "") -> None:
        self.count += 1
        if len(self.rows) < SHOWN:
            self.rows.append(number)
        self.example = self.example or example


class RowScan:
    """Looks at each row as it is read; keeps counts only."""

    def __init__(self, settings: DatasetSettings, mapping: ColumnMapping) -> None:
        self._settings, self._mapping = settings, mapping
        self._faults: dict[tuple[str, bool], Tally] = {}
        self._kinds = ValueKinds()
        self.rows = 0
        self.unusable = Tally()

    def add(self, number: int, row: Row) -> None:
        """Look at the row of that number."""
        self.rows += 1
        faults = row_faults(row, self._settings, self._mapping)
        for fault in faults:
            self._faults.setdefault((fault.kind, fault.fatal), Tally()).add(number, fault.message)
        if any(fault.fatal for fault in faults):
            self.unusable.add(number)
        self._kinds.add(number, row)

    def findings(self) -> list[Finding]:
        """Rows without a usable prompt first, then the other faults, then columns that mix types."""
        faults = [
            Finding(
                kind,
                f"{tally.count:,} of {self.rows:,} rows have {TITLES[kind]}",
                tally.count,
                tuple(tally.rows),
                tally.example,
                fatal,
            )
            for (kind, fatal), tally in self._faults.items()
        ]
        return sorted(faults, key=lambda finding: not finding.unusable) + list(self._mixed())

    def _mixed(self) -> Iterable[Finding]:
        for mixed in self._kinds.mixed():
            told = ", ".join(f"{kind} in {count:,}" for kind, count in mixed.counts.items())
            message = f"the column {shown_name(mixed.column)} holds {told} of {self.rows:,} rows"
            _, *others = mixed.first_rows
            rows = sorted({row for kind in others for row in mixed.first_rows[kind]})
            count = sum(mixed.counts[kind] for kind in others)
            yield Finding(
                "mixed_types", message, count, tuple(rows[:SHOWN]), f"not {next(iter(mixed.first_rows))} there"
            )


def sample_findings(train: Sequence[Sample], held_out: Sequence[Sample], mapping: ColumnMapping) -> list[Finding]:
    """Prompts that come twice, held-out prompts that are trained on in another writing, golds that are missing."""
    found = [*_duplicates(train), *_overlap(train, held_out)]
    if mapping.answer is None:
        return found
    missing = Tally()
    for sample in sorted((*train, *held_out), key=lambda sample: sample.row):
        if sample.answer is None or sample.answer == "":
            missing.add(sample.row)
    if missing.count:
        told = f"{missing.count:,} of {len(train) + len(held_out):,} rows have no gold answer"
        found.append(Finding("missing_gold", told, missing.count, tuple(missing.rows)))
    return found


def _duplicates(train: Sequence[Sample]) -> Iterable[Finding]:
    first: dict[tuple[str, ...], Sample] = {}
    same, other = Tally(), Tally()
    for sample in train:
        known = first.setdefault(prompt_key(sample), sample)
        if known is not sample:
            tally = same if _equal(known.answer, sample.answer) else other
            golds = "" if tally is same else f", {shown(known.answer)} and {shown(sample.answer)}"
            tally.add(sample.row, f"rows {known.row} and {sample.row}{golds}" if not tally.example else "")
    if same.count:
        told = f"{same.count:,} rows repeat the prompt and the gold of an earlier row"
        yield Finding("duplicate_prompt", told, same.count, tuple(same.rows), same.example)
    if other.count:
        told = f"{other.count:,} rows repeat the prompt of an earlier row with another gold"
        yield Finding("duplicate_other_gold", told, other.count, tuple(other.rows), other.example)


def prompt_key(sample: Sample) -> tuple[str, ...]:
    """Equal for rows that ask the same."""
    return tuple(message["content"] for message in sample.messages)


def _equal(left: Any, right: Any) -> bool:
    return bool(left == right) or str(left) == str(right)


def _overlap(train: Sequence[Sample], held_out: Sequence[Sample]) -> Iterable[Finding]:
    found = overlapping([sample.question for sample in held_out], (sample.question for sample in train))
    if found:
        place, row = min(found.items())
        told = (
            f"{len(found):,} of {len(held_out):,} held-out rows ask what a training row asks, but for letter case, "
            "white space and punctuation"
        )
        numbers = sorted(held_out[place].row for place in found)
        example = f"held-out row {held_out[place].row} and training row {train[row].row}"
        yield Finding("held_out_overlap", told, len(found), tuple(numbers[:SHOWN]), example)


def kinds_in_words(findings: Sequence[Finding]) -> str:
    """The kinds of unusable rows with their counts: `no prompt (2), an empty prompt (1)`."""
    return ", ".join(f"{TITLES[one.kind]} ({one.count:,})" for one in findings if one.unusable)
