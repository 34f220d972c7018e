"""Can the verifiers of a run read its golds? Each is asked itself, about rows from all over the data set.

An unreadable gold makes a verifier abstain: those rows teach nothing, so they are counted before the run.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from grpo_studio.config import RewardSettings
from grpo_studio.data import Sample
from grpo_studio.data.row_numbers import listed_rows
from grpo_studio.errors import VerifierError
from grpo_studio.problem import Problem, problem_of
from grpo_studio.remembered import Remembered
from grpo_studio.settings import Settings
from grpo_studio.verifiers import Registry, VerifierSpec
from grpo_studio.verifiers.bench.given import reads_gold
from grpo_studio.verifiers.bench.gold import GoldReport, gold_check
from grpo_studio.verifiers_used import files_used, verifiers_used

QUICK_ROWS = 200
"""Rows that are looked at while a person types."""
SCAN_ROWS = 20_000
"""Rows that a scan asks a verifier about."""
COSTLY_ROWS = 16
"""Rows that a verifier is asked about which may take seconds for each (one that runs code)."""
SECONDS = 120.0
"""About how long one verifier is asked for; one that hangs on golds would take hours for all rows."""
CHEAP_ROW_SECONDS = 0.02
"""Under this a verifier is cheap and asked about all rows: on a busy machine a few rows say no more than that."""
SHOWN = 10
ShareDone = Callable[[float], None]
"""Called with the share that is done, 0 to 1; it ends the work by raising."""


@dataclass(frozen=True)
class Golds:
    """What the verifiers make of the golds: a report of each that reads them, and what follows."""

    reports: list[GoldReport] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_dicts(self) -> list[dict[str, Any]]:
        """By the names that `check --json` prints."""
        return [
            {
                "label": report.label,
                "rows": report.rows,
                "readable": report.readable,
                "unreadable": [vars(row) for row in report.unreadable],
            }
            for report in self.reports
        ]


@dataclass(frozen=True)
class _Asked:
    report: GoldReport
    row_seconds: float


_asked: Remembered[_Asked] = Remembered()


def read_golds(
    settings: Settings,
    rewards: Sequence[tuple[int, RewardSettings]],
    registry: Registry,
    samples: Sequence[Sample],
    rows: int = QUICK_ROWS,
    progress: ShareDone | None = None,
) -> Golds:
    """Ask each verifier about at most so many rows.

    A problem is told when a verifier can read no gold at all; when it can read some, a note counts the others.
    `rewards` are those without another problem, with their places.
    """
    golds = Golds()
    missing = [sample.answer is None or sample.answer == "" for sample in samples]
    there = [place for place, gone in enumerate(missing) if not gone]
    reading = [(index, reward) for index, reward in rewards if _reads(registry.get(reward.verifier))]
    for done, (index, reward) in enumerate(reading if samples else ()):
        spec = registry.get(reward.verifier)
        by_answer = "answer" in spec.columns
        if by_answer and not there:
            wrong = f"{reward.label} needs the gold answer, and none of the {len(samples):,} rows has one"
            golds.problems.append(Problem("dataset.columns.answer", wrong, "map the column that holds it"))
            continue
        if by_answer and len(there) < len(samples):
            gone = f"{len(samples) - len(there):,} of {len(samples):,} rows have no gold answer"
            golds.notes.append(f"{gone}; {reward.label} abstains on them")
        asking = _Asking(reward, spec, registry, settings, _part(progress, done, len(reading)))
        chosen = [samples[place] for place in there] if by_answer else list(samples)
        try:
            report = asking.report_on(chosen, rows)
        except VerifierError as error:
            golds.problems.append(problem_of(f"rewards.{index}.verifier", error))
            continue
        golds.reports.append(report)
        _tell(report, reward, "dataset.columns.answer" if by_answer else f"rewards.{index}.verifier", golds)
    return golds


def _reads(spec: VerifierSpec) -> bool:
    return spec.place == "judge" and reads_gold(spec)


def _part(progress: ShareDone | None, done: int, of: int) -> ShareDone | None:
    return None if progress is None else lambda share: progress((done + share) / of)


def spread(places: Sequence[int], count: int) -> list[int]:
    """At most `count` of the places, evenly spaced, the first among them."""
    return [places[index * len(places) // count] for index in range(count)] if len(places) > count else list(places)


@dataclass(frozen=True)
class _Asking:
    """One verifier, asked about golds; the newest answers are kept, since a form is checked at every change."""

    reward: RewardSettings
    spec: VerifierSpec
    registry: Registry
    settings: Settings
    progress: ShareDone | None

    def report_on(self, samples: Sequence[Sample], rows: int) -> GoldReport:
        """A few rows first: how long they take says for how many more there is time.

        Raises:
            VerifierError: it cannot be used.
        """
        first = self._first_rows()
        only = first < QUICK_ROWS or rows <= first or len(samples) <= first
        few = self._ask(samples, min(rows, first), 1.0 if only else 0.0)
        in_time = rows if few.row_seconds < CHEAP_ROW_SECONDS else int(SECONDS / few.row_seconds)
        if only or in_time <= few.report.rows:
            return few.report
        return self._ask(samples, min(rows, in_time), 1.0).report

    def _first_rows(self) -> int:
        if self.spec.seconds is None:
            return QUICK_ROWS
        try:
            cheap = self.spec.seconds(**self.spec.with_defaults(self.reward.params)) <= 1
        except Exception:  # code of the verifier's own making; the judge that asks it next tells of the same
            cheap = False
        return QUICK_ROWS if cheap else COSTLY_ROWS

    def _ask(self, samples: Sequence[Sample], count: int, of_the_work: float) -> _Asked:
        places = spread(range(len(samples)), count)
        asked = [samples[place] for place in places]
        numbers = [samples[place].row or place + 1 for place in places]
        return _asked.get(self._key(asked, numbers), partial(self._answer, asked, numbers, of_the_work))

    def _answer(self, samples: Sequence[Sample], numbers: Sequence[int], of_the_work: float) -> _Asked:
        marks: list[tuple[int, float]] = []

        def told(done: int, total: int) -> None:
            marks.append((done, time.monotonic()))
            if self.progress is not None:
                self.progress(of_the_work * done / max(1, total))

        [report] = gold_check(
            [self.reward], samples, self.settings.rewards_dirs, shown=SHOWN, numbers=numbers, progress=told
        )
        return _Asked(report, _row_seconds(marks))

    def _key(self, samples: Sequence[Sample], numbers: Sequence[int]) -> str:
        files = files_used(verifiers_used(self.reward, self.registry), self.registry)
        folders = [str(folder) for folder in self.settings.rewards_dirs]
        digest = hashlib.sha256(repr([self.reward.label, self.reward.verifier, files, folders]).encode())
        digest.update(_text_of(self.reward.params))
        for number, sample in zip(numbers, samples, strict=True):
            digest.update(_text_of([number, sample.question, sample.columns]))
        return digest.hexdigest()


def _row_seconds(marks: Sequence[tuple[int, float]]) -> float:
    """Seconds for a row, by the rows done at each time: from the second mark on, since judges take a while to start."""
    (first, began), (last, ended) = marks[1 if len(marks) > 2 else 0], marks[-1]
    return (ended - began) / max(1, last - first)


def _text_of(value: Any) -> bytes:
    return json.dumps(value, default=repr).encode("utf-8", "surrogatepass")


def _tell(report: GoldReport, reward: RewardSettings, setting: str, golds: Golds) -> None:
    bad = report.rows - report.readable
    if bad == report.rows and reward.weight != 0:
        row = report.unreadable[0]
        wrong = f"{report.label} can read the gold of none of the {report.rows:,} rows looked at, such as {row.gold!r}"
        golds.problems.append(
            Problem(setting, f"{wrong}: {row.reason}", "map a column that holds an answer which it can read")
        )
    elif bad:
        where = listed_rows([row.row for row in report.unreadable], bad)
        golds.notes.append(
            f"{report.label} cannot read the gold of {bad:,} of the {report.rows:,} rows looked at ({where}) and "
            f"abstains there: {report.unreadable[0].reason}"
        )
    wrong_ones = report.ideal_checked - report.ideal_right
    if wrong_ones:
        where = listed_rows([row.row for row in report.ideal_wrong], wrong_ones)
        golds.notes.append(
            f"{report.label} does not accept the gold itself in {wrong_ones:,} of the {report.ideal_checked:,} rows "
            f"looked at ({where}): {report.ideal_wrong[0].reason}"
        )
