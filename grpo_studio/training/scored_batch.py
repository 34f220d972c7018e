"""From a scored generation batch to the groups and metrics that are recorded: plain values, no tensors.

A group's deviation is the sample deviation (n - 1), as TRL uses it for advantages.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from grpo_studio.evaluation_passing import PassRule
from grpo_studio.evaluation_stats import ks_of, pass_at_k_interval
from grpo_studio.group_kind import EQUAL, GroupKind, kind_of_group
from grpo_studio.store.records import CompletionRecord, GroupRecord, ScoreRecord

COUNTED = ("timeout", "error", "wrong_type", "non_finite")
"""Outcomes of a judgement that each have a metric, besides `abstained`, which counts all that have no value."""


@dataclass(frozen=True)
class ScoredCompletion:
    """One sampled completion; `reward` and `scores[i].value` are None where a verifier abstained."""

    prompt: str
    answer: str | None
    text: str
    tokens: int
    truncated: bool
    reward: float | None
    advantage: float
    scores: tuple[ScoreRecord, ...]


@dataclass(frozen=True)
class ScoredBatch:
    """One generation batch in the order of TRL: the G completions of a prompt lie side by side."""

    completions: Sequence[ScoredCompletion]
    group_size: int

    @property
    def tokens(self) -> int:
        """Completion tokens in all."""
        return sum(completion.tokens for completion in self.completions)

    def groups(self, split: str = "train") -> list[GroupRecord]:
        starts = range(0, len(self.completions), self.group_size)
        return [_group(self.completions[start : start + self.group_size], split) for start in starts]


def _group(rows: Sequence[ScoredCompletion], split: str) -> GroupRecord:
    rewards = [row.reward for row in rows if row.reward is not None]
    return GroupRecord(
        prompt=rows[0].prompt,
        answer=rows[0].answer,
        completions=tuple(
            CompletionRecord(row.text, row.tokens, row.truncated, row.reward, row.advantage, row.scores) for row in rows
        ),
        reward_mean=mean_or_none(rewards),
        reward_std=statistics.stdev(rewards) if len(rewards) > 1 else None,
        split=split,
    )


def batch_metrics(groups: Sequence[GroupRecord], masks_truncated: bool = False) -> dict[str, float | None]:
    """The metrics of one generation batch that follow from its groups, by their recorded names.

    The effective batch is what has an advantage and is not masked by the loss.
    """
    completions = [item for group in groups for item in group.completions]
    rewards = [item.reward for item in completions if item.reward is not None]
    kinds = [group_kind(group) for group in groups]
    metrics: dict[str, float | None] = {
        "reward/mean": mean_or_none(rewards),
        "reward/std": statistics.stdev(rewards) if len(rewards) > 1 else None,
        "group/mixed": kinds.count("mixed") / len(kinds),
        "group/all_good": kinds.count("all_good") / len(kinds),
        "group/all_bad": kinds.count("all_bad") / len(kinds),
        "group/effective_batch": float(
            sum(abs(item.advantage or 0.0) > EQUAL and not (masks_truncated and item.truncated) for item in completions)
        ),
        "advantage/abs_mean": mean_or_none([abs(item.advantage) for item in completions if item.advantage is not None]),
        "completion/length_mean": mean_or_none([float(item.tokens) for item in completions]),
        "completion/truncated": mean_or_none([float(item.truncated) for item in completions]),
    }
    return metrics | verifier_metrics([item.scores for item in completions])


def verifier_metrics(rows: Sequence[tuple[ScoreRecord, ...]]) -> dict[str, float | None]:
    """Mean score of each verifier over what it judged, and how many completions it did not judge as it should.

    `abstained` counts all that have no value, so also those of a wrong type and those that are not finite.
    """
    by_name: dict[str, list[ScoreRecord]] = {}
    for row in rows:
        for score in row:
            by_name.setdefault(score.verifier, []).append(score)
    metrics: dict[str, float | None] = {}
    for name, scores in by_name.items():
        metrics[f"reward/{name}/mean"] = mean_or_none([score.value for score in scores if score.value is not None])
        metrics[f"verifier/{name}/abstained"] = float(sum(score.value is None for score in scores))
        for outcome in COUNTED:
            metrics[f"verifier/{name}/{outcome}"] = float(sum(score.outcome == outcome for score in scores))
    return metrics


def group_kind(group: GroupRecord) -> GroupKind:
    """The kind of a recorded group, with what the weights of its verifiers allow."""
    reachable = sum(max(score.weight, 0.0) for score in group.completions[0].scores)
    return kind_of_group(group.reward_mean, group.reward_std, reachable)


def evaluation_metrics(groups: Sequence[GroupRecord], rule: PassRule | None = None) -> dict[str, float | None]:
    """Means over scored held-out rows, as `eval/...`; with a rule also what share of rows is solved, and pass@k.

    `eval/reward` and `eval/<label>/mean` are of the greedy completions; those of samples are named apart. Completions
    without a value are left out of each figure and counted in `eval/abstained` and `eval/sampled/abstained`.
    """
    greedy = [item for group in groups if group.split == "eval" for item in group.completions]
    metrics = {
        f"eval/{name.removeprefix('reward/')}": value
        for name, value in verifier_metrics([item.scores for item in greedy]).items()
        if name.startswith("reward/")
    }
    metrics = {"eval/reward": _mean_reward(greedy)} | metrics | {"eval/abstained": float(_without_reward(greedy))}
    if rule is not None:
        passed = [rule.passed(item.scores) for item in greedy]
        metrics["eval/passed"] = mean_or_none([float(one) for one in passed if one is not None])
    rows = [group for group in groups if group.split == "eval_sampled"]
    return metrics | (_sampled_metrics(rows, rule) if rows else {})


def _sampled_metrics(rows: Sequence[GroupRecord], rule: PassRule | None) -> dict[str, float | None]:
    items = [item for row in rows for item in row.completions]
    metrics: dict[str, float | None] = {
        # over rows, which weigh the same whatever was abstained on
        "eval/sampled/reward": mean_or_none([row.reward_mean for row in rows if row.reward_mean is not None]),
        "eval/sampled/abstained": float(_without_reward(items)),
    }
    if rule is not None:
        judged = [[rule.passed(item.scores) for item in row.completions] for row in rows]
        counts = [(len(one) - one.count(None), one.count(True)) for one in judged]
        samples = max(len(row.completions) for row in rows)
        metrics |= {f"eval/pass@{k}": pass_at_k_interval(counts, k).value for k in ks_of(samples)}
    return metrics


def _mean_reward(items: Sequence[CompletionRecord]) -> float | None:
    return mean_or_none([item.reward for item in items if item.reward is not None])


def _without_reward(items: Sequence[CompletionRecord]) -> int:
    return sum(item.reward is None for item in items)


def mean_or_none(values: Sequence[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    return statistics.fmean(finite) if finite else None
