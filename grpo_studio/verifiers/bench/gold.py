"""The gold check: can each verifier read the golds of a data set, and does the gold itself get the top score?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grpo_studio.config import RewardSettings
from grpo_studio.data import Sample
from grpo_studio.group_kind import EQUAL
from grpo_studio.verifiers.bench.given import (
    Progress,
    columns_of,
    cut,
    estimated_tokens,
    gives_parts,
    gold_of,
    reads_gold,
    specs_of,
    top_of,
)
from grpo_studio.verifiers.bench.judging import ROWS_AT_ONCE, BenchJudge
from grpo_studio.verifiers.contract import VerifierSpec
from grpo_studio.verifiers.judge import Score
from grpo_studio.verifiers.judge_work import accepted_example


@dataclass(frozen=True)
class GoldRow:
    """One row of the data set, counted from 1, with its gold (cut) and what is wrong with it."""

    row: int
    gold: str
    reason: str


@dataclass(frozen=True)
class GoldReport:
    """What one verifier makes of the golds of a data set; the tuples are cut, the counts are not.

    Args:
        reads_gold: whether it looks at the gold at all; if not, the counts are 0.
        readable: rows on which it does not abstain.
        unreadable: the other rows, with the verifier's reason.
        ideal_checked: readable rows whose gold was put into the form that the verifier expects, and judged; 0 when
            the verifier does not say which form that is.
        ideal_right: how many of those got the verifier's top score, or of an ensemble half of it: the gold is one part.
    """

    label: str
    verifier: str
    reads_gold: bool
    rows: int
    readable: int
    unreadable: tuple[GoldRow, ...]
    ideal_checked: int
    ideal_right: int
    ideal_wrong: tuple[GoldRow, ...]

    @property
    def unreadable_count(self) -> int:
        return self.rows - self.readable if self.reads_gold else 0


def gold_check(
    rewards: Sequence[RewardSettings],
    samples: Sequence[Sample],
    directories: Sequence[Path],
    time_limit: float = 5.0,
    shown: int = 50,
    numbers: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> list[GoldReport]:
    """One report for each reward. `numbers` are the rows' own, where some were left out before.

    Raises:
        VerifierError: a verifier is not there or cannot be used.
    """
    specs = specs_of(rewards, directories)
    rows = range(1, len(samples) + 1) if numbers is None else numbers
    total, done = sum(map(reads_gold, specs)) * len(samples), 0
    reports = []
    for reward, spec in zip(rewards, specs, strict=True):
        tally = _Tally(spec, shown)
        if reads_gold(spec):
            with BenchJudge([reward], [spec], directories, time_limit) as judge:
                for first in range(0, len(samples), ROWS_AT_ONCE):
                    if progress is not None:
                        progress(done, total)
                    part = samples[first : first + ROWS_AT_ONCE]
                    for place, judgement in enumerate(_judged(judge, spec, part)):
                        tally.add(part[place], rows[first + place], judgement)
                    done += len(part)
        reports.append(tally.report(reward, len(samples)))
    if progress is not None:
        progress(total, total)
    return reports


@dataclass(frozen=True)
class _Judgement:
    """The gold itself in the expected form, judged (None: it has no such form), and whether the gold was read."""

    ideal: Score | None
    reading: Score


def _judged(judge: BenchJudge, spec: VerifierSpec, samples: Sequence[Sample]) -> list[_Judgement]:
    """An ideal that is judged shows that the gold was read; else an accepted example is judged with that gold."""
    text = accepted_example(spec)
    columns = columns_of(samples, [estimated_tokens(text)] * len(samples))
    ideal: list[Score | None] = [*judge.score_ideal(columns)[0]] if spec.ideal else [None] * len(samples)
    rest = [place for place, score in enumerate(ideal) if score is None or score.outcome != "ok"]
    given = {name: [values[place] for place in rest] for name, values in columns.items()}
    readings = dict(zip(rest, judge.score([text] * len(rest), given)[0], strict=True))
    return [_judgement(score, readings.get(place)) for place, score in enumerate(ideal)]


def _judgement(ideal: Score | None, reading: Score | None) -> _Judgement:
    if reading is None:
        assert ideal is not None, "without an ideal there is a reading"
        return _Judgement(ideal, ideal)
    return _Judgement(None if ideal is None or ideal.value is None else ideal, reading)


class _Tally:
    """Counts the rows of one verifier."""

    def __init__(self, spec: VerifierSpec, shown: int) -> None:
        self._spec, self._shown = spec, shown
        # The gold alone may fill only one part of an ensemble.
        self._top = top_of(spec) / 2 if gives_parts(spec) else top_of(spec)
        self._readable = self._checked = self._right = 0
        self._unreadable: list[GoldRow] = []
        self._wrong: list[GoldRow] = []

    def add(self, sample: Sample, row: int, judgement: _Judgement) -> None:
        gold = cut(gold_of(self._spec, sample.columns))
        if judgement.reading.value is None:
            self._list(self._unreadable, GoldRow(row, gold, judgement.reading.reason))
            return
        self._readable += 1
        ideal = judgement.ideal
        if ideal is None or ideal.value is None:
            return
        self._checked += 1
        if ideal.value >= self._top - EQUAL:
            self._right += 1
            return
        reason = f"the gold itself scores {ideal.value:g}, below {self._top:g}"
        self._list(self._wrong, GoldRow(row, gold, f"{reason}: {ideal.reason}" if ideal.reason else reason))

    def _list(self, rows: list[GoldRow], entry: GoldRow) -> None:
        if len(rows) < self._shown:
            rows.append(entry)

    def report(self, reward: RewardSettings, rows: int) -> GoldReport:
        return GoldReport(
            label=reward.label,
            verifier=reward.verifier,
            reads_gold=reads_gold(self._spec),
            rows=rows,
            readable=self._readable,
            unreadable=tuple(self._unreadable),
            ideal_checked=self._checked,
            ideal_right=self._right,
            ideal_wrong=tuple(self._wrong),
        )
