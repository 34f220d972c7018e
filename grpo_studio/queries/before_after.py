"""Two evaluations of a run held beside each other: the same rows before and after, what flipped, and their texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from grpo_studio.evaluation_passing import PassRule
from grpo_studio.evaluation_stats import (
    Estimate,
    Flips,
    flips,
    ks_of,
    mean_interval,
    paired_difference,
    pass_at_k,
    pass_at_k_interval,
    share_interval,
)
from grpo_studio.queries.current import integers
from grpo_studio.queries.evaluated import EvaluatedRow, EvaluatedRows
from grpo_studio.queries.texts import SHORT_TEXT
from grpo_studio.store.reader import RunReader

PAGE_ROWS = 50
T = TypeVar("T")
Outcome = Literal["gained", "lost", "right", "wrong", "unjudged"]
OUTCOMES: tuple[Outcome, ...] = ("gained", "lost", "right", "wrong", "unjudged")


@dataclass(frozen=True)
class Pair:
    """One row in both evaluations; `outcome` says whether its greedy completion solves it before and after."""

    before: EvaluatedRow
    after: EvaluatedRow
    outcome: Outcome


@dataclass(frozen=True)
class Change:
    """A figure over the rows that both evaluations have; the difference is over rows with a value on both sides."""

    name: str
    before: Estimate
    after: Estimate
    difference: Estimate


@dataclass(frozen=True)
class Comparison:
    """Two evaluations of the same rows.

    Args:
        pairs: the rows that both have, in the order of the later one.
        only_before, only_after: rows that the other side lacks: they are in no figure.
        labels: the run's rewards, in the order in which their figures are told.
    """

    before: EvaluatedRows
    after: EvaluatedRows
    rule: PassRule
    pairs: tuple[Pair, ...]
    only_before: int
    only_after: int
    labels: tuple[str, ...] = ()

    def flips(self) -> Flips:
        return flips(*self._sides(lambda row: _passed(row, self.rule)))

    def count(self, outcome: Outcome) -> int:
        return sum(pair.outcome == outcome for pair in self.pairs)

    def passed(self) -> Change:
        """The share of rows solved by the greedy completion."""
        before, after = self._sides(lambda row: _passed(row, self.rule))
        change = paired_difference(
            [None if one is None else float(one) for one in before],
            [None if one is None else float(one) for one in after],
        )
        return Change("passed", share_interval(before), share_interval(after), change)

    def reward(self) -> Change:
        """Of the greedy completions."""
        return self._change("reward", lambda row: row.reward)

    def verifiers(self) -> list[Change]:
        """Each reward by its label: the run's in their order, then others that were judged by."""
        judged = dict.fromkeys(label for pair in self.pairs for label in (*pair.after.scores, *pair.before.scores))
        labels = [
            *[label for label in self.labels if label in judged],
            *[one for one in judged if one not in self.labels],
        ]
        return [self._change(label, _score_of(label)) for label in labels]

    def sampled_reward(self) -> Change | None:
        """Mean over the samples of a row, then over rows; None where neither side was sampled."""
        if self.samples() == (0, 0):
            return None
        return self._change("sampled", lambda row: None if row.sampled is None else row.sampled.reward)

    def pass_at(self) -> list[tuple[int, Change]]:
        """pass@k for each k that a side has enough samples for."""
        return [(k, self._pass_at(k)) for k in sorted({k for count in self.samples() for k in ks_of(count)})]

    def samples(self) -> tuple[int, int]:
        """Samples of a row on either side, the most that any has."""
        before, after = self._sides(lambda row: 0 if row.sampled is None else row.sampled.count)
        return max(before, default=0), max(after, default=0)

    def of(self, outcomes: Sequence[Outcome]) -> list[Pair]:
        return [pair for pair in self.pairs if pair.outcome in outcomes]

    def _pass_at(self, k: int) -> Change:
        counts = self._sides(lambda row: (0, 0) if row.sampled is None else (row.sampled.judged, row.sampled.passed))
        values = [[pass_at_k(*count, k) for count in side] for side in counts]
        return Change(
            f"pass@{k}",
            pass_at_k_interval(counts[0], k),
            pass_at_k_interval(counts[1], k),
            paired_difference(values[0], values[1]),
        )

    def _change(self, name: str, value: Callable[[EvaluatedRow], float | None]) -> Change:
        before, after = self._sides(value)
        return Change(name, mean_interval(before), mean_interval(after), paired_difference(before, after))

    def _sides(self, value: Callable[[EvaluatedRow], T]) -> tuple[list[T], list[T]]:
        return [value(pair.before) for pair in self.pairs], [value(pair.after) for pair in self.pairs]


def compared(before: EvaluatedRows, after: EvaluatedRows, rule: PassRule, labels: tuple[str, ...] = ()) -> Comparison:
    """The rows of two evaluations put side by side: by prompt, answer and occurrence, not by their places."""
    earlier = {row.key: row for row in before.rows}
    both = [(earlier[row.key], row) for row in after.rows if row.key in earlier]
    pairs = [Pair(one, other, _outcome(one, other, rule)) for one, other in both]
    return Comparison(
        before, after, rule, tuple(pairs), len(before.rows) - len(pairs), len(after.rows) - len(pairs), labels
    )


def texts_of(reader: RunReader, rows: Sequence[EvaluatedRow], cut: int = SHORT_TEXT) -> dict[int, dict[str, Any]]:
    """Prompt, answer, completion and what each verifier said of at most `PAGE_ROWS` rows, by the id of the group.

    Texts are cut at `cut`; `length` is of the whole. `full_text` gives a whole one on demand.
    """
    shown = rows[:PAGE_ROWS]
    found: dict[int, dict[str, Any]] = {}
    names = ("prompt", "prompt_length", "answer", "completion", "text", "length", "tokens", "truncated", "reward")
    for group, *values in reader.rows(
        "SELECT g.id, substr(g.prompt, 1, ?), length(g.prompt), substr(g.answer, 1, 500), c.id, substr(c.text, 1, ?), "
        "length(c.text), c.tokens, c.truncated, c.reward FROM prompt_group g JOIN completion c ON c.group_id = g.id "
        f"WHERE c.id IN ({integers(row.completion for row in shown)})",
        (cut, cut),
    ):
        found[group] = dict(zip(names, values, strict=True)) | {"scores": []}
    groups = {row.completion: row.group for row in shown}
    for completion, verifier, value, weight, reason, extracted, outcome in reader.rows(
        "SELECT completion_id, verifier, value, weight, substr(reason, 1, 500), substr(extracted, 1, 200), outcome "
        f"FROM score WHERE completion_id IN ({integers(groups)})"
    ):
        found[groups[completion]]["scores"].append(
            {"verifier": verifier, "value": value, "weight": weight, "reason": reason, "extracted": extracted}
            | {"outcome": outcome}
        )
    return found


def _score_of(label: str) -> Callable[[EvaluatedRow], float | None]:
    return lambda row: row.scores.get(label)


def _passed(row: EvaluatedRow, rule: PassRule) -> bool | None:
    return rule.judged(row.scores.get(rule.reward))


def _outcome(before: EvaluatedRow, after: EvaluatedRow, rule: PassRule) -> Outcome:
    one, other = _passed(before, rule), _passed(after, rule)
    if one is None or other is None:
        return "unjudged"
    if one == other:
        return "right" if one else "wrong"
    return "gained" if other else "lost"
