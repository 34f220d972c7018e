"""Can the verifiers of a run read its golds? Each is asked itself, about rows from all over the data set.

An unreadable gold makes a verifier abstain: those rows teach nothing, so they are counted before the run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import partial

from grpo_studio.config import RewardSettings, RunConfig
from grpo_studio.data import Sample
from grpo_studio.errors import VerifierError
from grpo_studio.problem import Problem, problem_of
from grpo_studio.remembered import Remembered
from grpo_studio.settings import Settings
from grpo_studio.verifiers import Registry, VerifierSpec
from grpo_studio.verifiers.bench.given import reads_gold
from grpo_studio.verifiers.bench.gold import GoldReport, GoldRow, gold_check
from grpo_studio.verifiers_used import files_used, verifiers_used

ROWS = 200
COSTLY_ROWS = 16
"""Rows that a verifier is asked about which may take seconds for each (one that runs code)."""
SHOWN = 5
_reports: Remembered[GoldReport] = Remembered()


def gold_problems(
    config: RunConfig,
    settings: Settings,
    rewards: Sequence[tuple[int, RewardSettings]],
    registry: Registry,
    samples: Sequence[Sample],
    notes: list[str],
) -> Iterator[Problem]:
    """Problems of verifiers that can read no gold at all; those that can read some are noted with their counts.

    `rewards` are those without another problem, with their places.
    """
    missing = [sample.answer is None or sample.answer == "" for sample in samples]
    there = [place for place, gone in enumerate(missing) if not gone]
    for index, reward in rewards:
        spec = registry.get(reward.verifier)
        if spec.place != "judge" or not samples or not reads_gold(spec):
            continue
        by_answer = "answer" in spec.columns
        if by_answer and not there:
            wrong = f"{reward.label} needs the gold answer, and none of the {len(samples)} rows has one"
            yield Problem("dataset.columns.answer", wrong, "map the column that holds it")
            continue
        if by_answer and len(there) < len(samples):
            gone = f"{len(samples) - len(there)} of {len(samples)} rows have no gold answer"
            notes.append(f"{gone}; {reward.label} abstains on them")
        places = spread(there if by_answer else range(len(samples)), _rows_to_ask(reward, spec))
        try:
            report = _report(reward, registry, settings, [samples[place] for place in places], places)
        except VerifierError as error:
            yield problem_of(f"rewards.{index}.verifier", error)
            continue
        field = "dataset.columns.answer" if by_answer else f"rewards.{index}.verifier"
        yield from _told(report, reward, field, notes)


def _rows_to_ask(reward: RewardSettings, spec: VerifierSpec) -> int:
    if spec.seconds is None:
        return ROWS
    try:
        return ROWS if spec.seconds(**spec.with_defaults(reward.params)) <= 1 else COSTLY_ROWS
    except Exception:  # code of the verifier's own making; the judge that asks it next tells of the same
        return COSTLY_ROWS


def spread(places: Sequence[int], count: int) -> list[int]:
    """At most `count` of the places, evenly spaced, the first among them."""
    stride = max(1, -(-len(places) // count))
    return list(places[::stride])


def _told(report: GoldReport, reward: RewardSettings, field: str, notes: list[str]) -> Iterator[Problem]:
    bad = report.rows - report.readable
    if bad == report.rows and reward.weight != 0:
        row = report.unreadable[0]
        wrong = f"{report.label} can read the gold of none of the {report.rows} rows looked at, such as {row.gold!r}"
        yield Problem(field, f"{wrong}: {row.reason}", "map a column that holds an answer which it can read")
    elif bad:
        where = f"{bad} of the {report.rows} rows looked at ({_rows(report.unreadable, bad)})"
        notes.append(
            f"{report.label} cannot read the gold of {where} and abstains there: {report.unreadable[0].reason}"
        )
    wrong_ones = report.ideal_checked - report.ideal_right
    if wrong_ones:
        where = f"{wrong_ones} of the {report.ideal_checked} rows looked at ({_rows(report.ideal_wrong, wrong_ones)})"
        notes.append(f"{report.label} does not accept the gold itself in {where}: {report.ideal_wrong[0].reason}")


def _rows(rows: Sequence[GoldRow], count: int) -> str:
    numbers = ", ".join(str(row.row) for row in rows[:SHOWN])
    return f"training row{'s' * (count > 1)} {numbers}{', ...' * (count > SHOWN)}"


def _report(
    reward: RewardSettings, registry: Registry, settings: Settings, samples: Sequence[Sample], places: Sequence[int]
) -> GoldReport:
    """The report of one verifier; the newest are kept, since a form is checked anew at every change of any field."""
    rows = [[place, sample.question, sample.columns] for place, sample in zip(places, samples, strict=True)]
    files = files_used(verifiers_used(reward, registry), registry)
    folders = [str(folder) for folder in settings.rewards_dirs]
    about = json.dumps([reward.verifier, reward.label, reward.params, files, folders, rows], default=repr)
    key = hashlib.sha256(about.encode("utf-8", "surrogatepass")).hexdigest()
    numbers = [place + 1 for place in places]
    found = partial(gold_check, [reward], samples, settings.rewards_dirs, shown=SHOWN, numbers=numbers)
    return _reports.get(key, lambda: found()[0])
