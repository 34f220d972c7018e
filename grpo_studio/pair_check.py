"""Both settings of a pair judged before anything is started, as `check` judges those of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from grpo_studio.config import RunConfig
from grpo_studio.pair_records import SIDES
from grpo_studio.pair_settings import equal_in_effect, notes_on, require_setting, title_of, value_text, with_value
from grpo_studio.preflight import CheckReport
from grpo_studio.problem import Problem
from grpo_studio.supervisor import with_whole_paths

Which = Literal["A", "B", "both"]
Judge = Callable[[Mapping[str, Any]], CheckReport]


@dataclass(frozen=True)
class SideProblem:
    """A problem, and whose it is."""

    side: Which
    problem: Problem

    def as_dict(self) -> dict[str, Any]:
        return {"side": self.side} | self.problem.as_dict()

    def __str__(self) -> str:
        return str(self.problem) if self.side == "both" else f"{self.side}: {self.problem}"


@dataclass(frozen=True)
class CheckedPair:
    """Two settings that differ in `field`, and what is wrong with them.

    Args:
        configs: None for one that is no configuration at all.
        notes: what to expect of the comparison, then what the checks note of either.
    """

    field: str
    values: tuple[Any, Any]
    configs: tuple[RunConfig | None, RunConfig | None]
    problems: list[SideProblem]
    notes: list[str]

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def exit_code(self) -> int:
        """As that of `check`."""
        if self.ok:
            return 0
        return 2 if any(one.problem.unknown_key for one in self.problems) else 1

    def as_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "field": self.field,
            "title": title_of(self.field),
            "values": list(self.values),
            "problems": [one.as_dict() for one in self.problems],
            "notes": self.notes,
        }


def check_pair(data: Mapping[str, Any], field: str, values: tuple[Any, Any], judge: Judge) -> CheckedPair:
    """Judge the raw settings with either value of `field`; starts nothing.

    Args:
        judge: as `preflight.check` with its place and look.

    Raises:
        UsageError: `field` is no setting.
    """
    require_setting(field, data)
    reports = [judge(with_value(data, field, value)) for value in values]
    problems = _by_side([report.problems for report in reports])
    a, b = (None if report.config is None else with_whole_paths(report.config) for report in reports)
    notes: list[str] = []
    if a is not None and b is not None:
        if (same := equal_in_effect(field, a, b)) is not None:
            problems.insert(0, SideProblem("both", _same_problem(field, values, same)))
        else:
            notes += notes_on(field, a, b)
    notes += _notes_by_side([report.notes for report in reports])
    return CheckedPair(field, values, (a, b), problems, notes)


def _same_problem(field: str, values: tuple[Any, Any], same: str) -> Problem:
    one, other = map(value_text, values)
    told = f"both values are {one}" if one == other else f"{one} and {other} both come to {same} here"
    return Problem(field, told, "give two values that differ")


def _by_side(problems: list[list[Problem]]) -> list[SideProblem]:
    """What both sides have is told once."""
    a, b = problems
    both = [SideProblem("both", one) for one in a if one in b]
    of_a = [SideProblem("A", one) for one in a if one not in b]
    of_b = [SideProblem("B", one) for one in b if one not in a]
    return [*of_a, *of_b, *both]


def _notes_by_side(notes: list[list[str]]) -> list[str]:
    told = [note for note in notes[0] if note in notes[1]]
    for side, own, other in zip(SIDES, notes, reversed(notes), strict=True):
        told += [f"{side}: {note}" for note in own if note not in other]
    return told
