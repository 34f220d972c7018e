"""The adapter between verifiers, judged in child processes or by the trainer, and the reward functions TRL calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from grpo_studio.config import RewardSettings
from grpo_studio.data import Sample
from grpo_studio.store.records import ScoreRecord
from grpo_studio.verifiers import text_of
from grpo_studio.verifiers.bench.given import columns_of
from grpo_studio.verifiers.judge import Judge, JudgeRequest, Score
from grpo_studio.weighted_reward import LARGEST, weighted_reward

SAMPLE_COLUMN = "sample"
"""Column of the training set that holds a row's place among the samples."""


class Scorer(Protocol):
    """Scores completions in this process, for a verifier whose place is the trainer."""

    def score(self, samples: Sequence[Sample], completions: Sequence[str]) -> list[Score]: ...


class JudgedRewards:
    """Scores batches with all verifiers of a run; the newest batch's scores stay readable for recording."""

    def __init__(
        self,
        rewards: Sequence[RewardSettings],
        directories: Sequence[Path],
        time_limit: float = 5.0,
        scorers: Mapping[int, Scorer] | None = None,
    ) -> None:
        """`scorers` score the rewards of these places (from 0); a judge scores the others."""
        self.rewards = tuple(rewards)
        self._scorers = dict(scorers or {})
        self._judged_places = [place for place in range(len(self.rewards)) if place not in self._scorers]
        judged = [self.rewards[place] for place in self._judged_places]
        requests = [JudgeRequest(reward.verifier, dict(reward.params)) for reward in judged]
        self._judge = Judge(requests, directories, time_limit=time_limit) if requests else None
        self._scored: Sequence[Any] | None = None
        self._latest: list[tuple[ScoreRecord, ...]] = []

    def close(self) -> None:
        if self._judge is not None:
            self._judge.close()

    def score(
        self, completions: Sequence[Any], samples: Sequence[Sample], tokens: Sequence[int]
    ) -> list[tuple[ScoreRecord, ...]]:
        """All verdicts of each completion, in the order of the run's rewards; `tokens` are the completions' lengths."""
        texts = [text_of(completion) for completion in completions]
        by_place: dict[int, list[Score]] = {
            place: scorer.score(samples, texts) for place, scorer in self._scorers.items()
        }
        if self._judge is not None:
            columns = columns_of(samples, tokens)
            by_place |= zip(self._judged_places, self._judge.score(texts, columns), strict=True)
        by_reward = [by_place[place] for place in range(len(self.rewards))]
        return [
            without_excess([_record(reward, score) for reward, score in zip(self.rewards, verdicts, strict=True)])
            for verdicts in zip(*by_reward, strict=True)
        ]

    def functions(self, samples: Sequence[Sample]) -> list[Callable[..., list[float | None]]]:
        """One reward function a verifier, as TRL wants them; the first that is called judges the batch for all."""
        return [self._function(index, samples) for index in range(len(self.rewards))]

    def latest(self) -> list[tuple[ScoreRecord, ...]]:
        """The scores of the batch that was judged last."""
        return self._latest

    def _function(self, index: int, samples: Sequence[Sample]) -> Callable[..., list[float | None]]:
        def reward(
            completions: Sequence[Any], completion_ids: Sequence[Sequence[int]], **columns: Any
        ) -> list[float | None]:
            if self._scored is not completions:
                rows = [samples[place] for place in columns[SAMPLE_COLUMN]]
                self._latest = self.score(completions, rows, [len(ids) for ids in completion_ids])
                self._scored = completions
            return [row[index].value for row in self._latest]

        reward.__name__ = self.rewards[index].label
        return reward


def without_excess(scores: Sequence[ScoreRecord]) -> tuple[ScoreRecord, ...]:
    """The scores of one completion; where they add up to no usable reward, the one most at fault has no value.

    So the reward that TRL sums up and the one that is recorded are missing alike, and the alarm names the verifier.
    """
    weighed = [(abs(one.weight * one.value), place) for place, one in enumerate(scores) if one.weight and one.value]
    judged = all(one.value is not None for one in scores if one.weight)
    if not weighed or not judged or weighted_reward(scores) is not None:
        return tuple(scores)
    size, place = max(weighed)
    one = scores[place]
    reason = (
        f"the score {one.value:g} times the weight {one.weight:g} is {size:g} in size; a reward is at most {LARGEST:g}"
    )
    mended = replace(one, value=None, outcome="non_finite", reason=reason)
    return (*scores[:place], mended, *scores[place + 1 :])


def _record(reward: RewardSettings, score: Score) -> ScoreRecord:
    return ScoreRecord(
        verifier=reward.label,
        value=score.value,
        weight=reward.weight,
        seconds=score.seconds,
        reason=score.reason,
        extracted=score.extracted,
        outcome=score.outcome,
    )
