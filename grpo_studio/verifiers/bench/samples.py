"""What rewards make of a model's own samples: spread, latency, outcomes, and the share of groups that would teach."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grpo_studio.config import RewardSettings
from grpo_studio.data import Sample
from grpo_studio.group_kind import EQUAL, kind_of_group
from grpo_studio.verifiers.bench.given import WHOLE, Progress, columns_of, reads_gold, specs_of
from grpo_studio.verifiers.bench.judging import BenchJudge, judged_here
from grpo_studio.verifiers.bench.probes import whole_score
from grpo_studio.verifiers.bench.verdict import Counts, Level, Trouble, verdict_of
from grpo_studio.verifiers.contract import VerifierSpec
from grpo_studio.verifiers.judge import Score

BINS = 10


@dataclass(frozen=True)
class SampledGroup:
    """One row and the completions that a model wrote for it; `tokens` counts each one's, its end token included."""

    sample: Sample
    completions: tuple[str, ...]
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class RewardSpread:
    """The scores of one reward over all completions; None where nothing was judged.

    `histogram` holds (low, high, count); a single value is one bar without width. `outcomes` counts completions.
    """

    label: str
    weight: float
    mean: float | None
    std: float | None
    minimum: float | None
    maximum: float | None
    histogram: tuple[tuple[float, float, int], ...]
    seconds_median: float
    seconds_max: float
    outcomes: dict[str, int]


@dataclass(frozen=True)
class SampleReport:
    """All of it; `unjudged` groups have fewer than two completions with a reward."""

    rewards: tuple[RewardSpread, ...]
    total: RewardSpread
    groups: int
    mixed: int
    all_good: int
    all_bad: int
    unjudged: int
    verdict: str
    level: Level


def sample_report(
    rewards: Sequence[RewardSettings],
    groups: Sequence[SampledGroup],
    directories: Sequence[Path],
    time_limit: float = 5.0,
    progress: Progress | None = None,
) -> SampleReport:
    """Judge the groups as a run would, with the same weights and the same rule for abstentions.

    Raises:
        VerifierError: a verifier is not there or cannot be used.
    """
    specs = specs_of(rewards, directories)
    elsewhere = [r.label for r, spec in zip(rewards, specs, strict=True) if spec.place != "judge" and r.weight != 0]
    rewards = judged_here(rewards, specs)
    texts = [text for group in groups for text in group.completions]
    samples = [group.sample for group in groups for _ in group.completions]
    tokens = [count for group in groups for count in group.tokens]
    with BenchJudge(rewards, specs, directories, time_limit) as judge:
        by_reward = judge.score_in_parts(texts, columns_of(samples, tokens), progress)
    whole = [whole_score(rewards, [scores[place] for scores in by_reward]) for place in range(len(texts))]
    counts = _kinds(rewards, groups, whole)
    spreads = tuple(_spread(r.label, r.weight, scores) for r, scores in zip(rewards, by_reward, strict=True))
    text, level = verdict_of(counts, _troubles(rewards, by_reward), _flat(rewards, specs, spreads))
    if elsewhere:
        text += f". Without {', '.join(elsewhere)}, which only a run can score"
    return SampleReport(
        rewards=spreads,
        total=_spread(WHOLE, 1.0, whole),
        groups=len(groups),
        mixed=counts.mixed,
        all_good=counts.all_good,
        all_bad=counts.all_bad,
        unjudged=counts.unjudged,
        verdict=text,
        level=level,
    )


def _kinds(rewards: Sequence[RewardSettings], groups: Sequence[SampledGroup], whole: Sequence[Score]) -> Counts:
    reachable = sum(max(reward.weight, 0.0) for reward in rewards)
    kinds: Counter[str] = Counter()
    start = 0
    for group in groups:
        end = start + len(group.completions)
        scored = [score.value for score in whole[start:end] if score.value is not None]
        deviation = statistics.stdev(scored) if len(scored) > 1 else None
        kinds[kind_of_group(statistics.mean(scored) if scored else None, deviation, reachable)] += 1
        start = end
    return Counts(kinds["mixed"], kinds["all_good"], kinds["all_bad"], kinds["unscored"])


def _spread(label: str, weight: float, scores: Sequence[Score]) -> RewardSpread:
    values = [score.value for score in scores if score.value is not None]
    seconds = [score.seconds for score in scores] or [0.0]
    return RewardSpread(
        label=label,
        weight=weight,
        mean=statistics.mean(values) if values else None,
        std=statistics.stdev(values) if len(values) > 1 else None,
        minimum=min(values, default=None),
        maximum=max(values, default=None),
        histogram=histogram(values),
        seconds_median=statistics.median(seconds),
        seconds_max=max(seconds),
        outcomes=dict(Counter(score.outcome for score in scores)),
    )


def histogram(values: Sequence[float]) -> tuple[tuple[float, float, int], ...]:
    """Ten equal bins from the least to the greatest value; the upper edge belongs to the last one."""
    if not values:
        return ()
    low, high = min(values), max(values)
    width = high / BINS - low / BINS  # in this order nothing overflows
    if width <= EQUAL / BINS:
        return ((low, high, len(values)),)
    counts = Counter(min(BINS - 1, int(value / width - low / width)) for value in values)
    return tuple((low + bin_ * width, low + (bin_ + 1) * width, counts[bin_]) for bin_ in range(BINS))


def _troubles(rewards: Sequence[RewardSettings], by_reward: Sequence[Sequence[Score]]) -> list[Trouble]:
    """Abstentions of verifiers that count, then time-outs and errors, which score 0."""
    troubles = []
    for reward, scores in zip(rewards, by_reward, strict=True):
        if reward.weight == 0 or not scores:
            continue
        for abstained, found in (
            (True, [score for score in scores if score.value is None]),
            (False, [score for score in scores if score.outcome in ("timeout", "error")]),
        ):
            if found:
                reason = Counter(score.reason for score in found).most_common(1)[0][0]
                troubles.append(Trouble(reward.label, len(found) / len(scores), reason, abstained))
    return troubles


def _flat(
    rewards: Sequence[RewardSettings], specs: Sequence[VerifierSpec], spreads: Sequence[RewardSpread]
) -> list[str]:
    """Verifiers that read the gold and yet told no completion from another."""
    return [
        f"{spread.label} gives every completion {spread.minimum:g}"
        for reward, spec, spread in zip(rewards, specs, spreads, strict=True)
        if reward.weight > 0
        and reads_gold(spec)
        and spread.minimum is not None
        and spread.maximum is not None
        and spread.maximum - spread.minimum <= EQUAL
    ]
