"""Exploit probes: do the verifiers, each and together, pay for texts that solve nothing?

What is called paying, measured from a plain wrong answer ("I do not know the answer.") up to the top score:
- a verifier that reads the gold: anything above the plain wrong answer. Advantages are relative to the group, so even
  a hundredth is an incentive where all else gets 0;
- one that reads no gold (a format, a length): more than half of the way to the top. It pays for form by design,
  whoever fills it in, so that is said in `note`, and the whole reward is what counts;
- one that gives partial scores by design (an ensemble), and the whole reward, the weighted sum: more than half of the
  way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_studio.config import RewardSettings
from grpo_studio.data import Sample
from grpo_studio.group_kind import EQUAL
from grpo_studio.verifiers.bench.given import (
    WHOLE,
    Progress,
    as_record,
    columns_of,
    estimated_tokens,
    gives_parts,
    reads_gold,
    specs_of,
    top_of,
)
from grpo_studio.verifiers.bench.judging import BenchJudge, judged_here
from grpo_studio.verifiers.bench.probe_texts import PLAIN_WRONG, Probe, probes_for
from grpo_studio.verifiers.contract import VerifierSpec
from grpo_studio.verifiers.judge import Score
from grpo_studio.weighted_reward import LARGEST, weighted_reward

TEXTS_AT_ONCE = 8


@dataclass(frozen=True)
class ProbeResult:
    """What one verifier (or, labelled 'whole reward', their weighted sum) makes of one probe.

    `pays` by the rule at the top of this file; `note` says what should be known about a score above the plain wrong
    answer's, else it is empty.
    """

    label: str
    probe: str
    what: str
    text: str
    score: Score
    pays: bool
    note: str = ""


@dataclass(frozen=True)
class _Scale:
    """What a plain wrong answer gets and what the best one gets."""

    wrong: float
    top: float
    strict: bool

    def pays(self, value: float | None) -> bool:
        if value is None or self.top - self.wrong <= EQUAL:
            return False
        limit = self.wrong if self.strict else (self.wrong + self.top) / 2
        return value > limit + EQUAL


def exploit_probes(
    rewards: Sequence[RewardSettings],
    sample: Sample,
    directories: Sequence[Path],
    time_limit: float = 5.0,
    progress: Progress | None = None,
) -> list[ProbeResult]:
    """For each probe one result a reward, in their order, then that of the whole reward.

    Raises:
        VerifierError: a verifier is not there or cannot be used.
    """
    specs = specs_of(rewards, directories)
    rewards = judged_here(rewards, specs)
    probes = probes_for(rewards, sample)
    texts = [PLAIN_WRONG, *(probe.text for probe in probes)]
    with BenchJudge(rewards, specs, directories, time_limit) as judge:
        columns = columns_of([sample] * len(texts), [estimated_tokens(text) for text in texts])
        by_reward = judge.score_in_parts(texts, columns, progress, TEXTS_AT_ONCE)
        tops = _tops(judge, specs, sample)
    scales = [
        _Scale(scores[0].value or 0.0, top, reads_gold(spec) and not gives_parts(spec))
        for scores, top, spec in zip(by_reward, tops, specs, strict=True)
    ]
    whole = _Scale(
        sum(reward.weight * scale.wrong for reward, scale in zip(rewards, scales, strict=True)),
        sum(
            reward.weight * (s.top if reward.weight > 0 else s.wrong) for reward, s in zip(rewards, scales, strict=True)
        ),
        strict=False,
    )
    results = []
    for place, probe in enumerate(probes, start=1):
        scores = [row[place] for row in by_reward]
        for reward, spec, score, scale in zip(rewards, specs, scores, scales, strict=True):
            form = "" if reads_gold(spec) else f"{reward.label} judges the form alone, so any text of this form gets it"
            results.append(_result(reward.label, probe, score, scale, form or _luck(sample, probe)))
        results.append(_result(WHOLE, probe, whole_score(rewards, scores), whole, _luck(sample, probe)))
    return results


def probe_row(samples: Sequence[Sample]) -> int:
    """The row (from 0) on which probes say most: a gold from 1 to 99 that its question does not give away.

    Where the question holds the gold, repeating it is no exploit but luck.
    """

    def rank(index: int) -> tuple[bool, bool, bool]:
        answer = samples[index].answer
        gold = _short(answer)
        given_away = stands_in(gold, samples[index].question)
        return answer is None or answer == "", given_away, re.fullmatch(r"[1-9]\d?", gold) is None

    return min(range(min(len(samples), 1000)), key=rank, default=0)


def _short(gold: Any) -> str:
    """A gold as text; of a worked solution what follows its last ####."""
    return str(gold).rpartition("####")[2].strip()


def stands_in(gold: str, text: str) -> bool:
    """Whether a gold is to be found in a text as a word or number of its own."""
    return bool(gold) and re.search(rf"(?<![\w.]){re.escape(gold)}(?!\w|\.\d)", text) is not None


def whole_score(rewards: Sequence[RewardSettings], scores: Sequence[Score]) -> Score:
    """The weighted sum as a score of its own; it abstains where a verifier of non-zero weight does, as in a run."""
    value = weighted_reward([as_record(reward, score) for reward, score in zip(rewards, scores, strict=True)])
    seconds = sum(score.seconds for score in scores)
    if value is None:
        labels = [r.label for r, s in zip(rewards, scores, strict=True) if s.value is None and r.weight != 0]
        reason = f"{', '.join(labels)} cannot judge it" if labels else f"the weighted scores pass {LARGEST:g} together"
        return Score(None, reason, None, seconds, "abstained")
    return Score(value, "", None, seconds, "ok")


def _tops(judge: BenchJudge, specs: Sequence[VerifierSpec], sample: Sample) -> list[float]:
    """The best score for this row: that of the ideal completion where a verifier knows one, else of its examples."""
    ideal = judge.score_ideal(columns_of([sample], [estimated_tokens(sample.question)]))
    tops = []
    for spec, [score] in zip(specs, ideal, strict=True):
        known = spec.ideal is not None and score.outcome == "ok"
        tops.append(max(score.value or 0.0, 0.0) if known else top_of(spec))
    return tops


def _luck(sample: Sample, probe: Probe) -> str:
    gold = _short(sample.answer)
    return f"the gold, {gold:.40}, stands in this text" if stands_in(gold, probe.text) else ""


def _result(label: str, probe: Probe, score: Score, scale: _Scale, note: str) -> ProbeResult:
    above = score.value is not None and score.value > scale.wrong + EQUAL
    return ProbeResult(label, probe.name, probe.what, probe.text, score, scale.pays(score.value), note if above else "")
