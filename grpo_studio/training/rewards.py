"""The adapter between verifiers, judged in a child process, and the reward functions that TRL calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from grpo_studio.config import RewardSettings
from grpo_studio.data import Sample
from grpo_studio.store.records import ScoreRecord
from grpo_studio.verifiers import text_of
from grpo_studio.verifiers.judge import Judge, JudgeRequest

SAMPLE_COLUMN = "sample"
"""Column of the training set that holds a row's place among the samples."""


class JudgedRewards:
    """Scores batches with all verifiers of a run; the newest batch's scores stay readable for recording."""

    def __init__(self, rewards: Sequence[RewardSettings], directories: Sequence[Path], time_limit: float = 5.0) -> None:
        self.rewards = tuple(rewards)
        requests = [JudgeRequest(reward.verifier, dict(reward.params)) for reward in rewards]
        self._judge = Judge(requests, directories, time_limit=time_limit)
        self._scored: Sequence[Any] | None = None
        self._latest: list[tuple[ScoreRecord, ...]] = []

    def close(self) -> None:
        self._judge.close()

    def score(self, completions: Sequence[Any], samples: Sequence[Sample]) -> list[tuple[ScoreRecord, ...]]:
        """All verdicts of each completion, in the order of the run's rewards."""
        names = dict.fromkeys(name for sample in samples for name in sample.columns)
        columns = {name: [sample.columns.get(name) for sample in samples] for name in names}
        by_reward = self._judge.score([text_of(completion) for completion in completions], columns)
        return [
            tuple(
                ScoreRecord(
                    verifier=reward.label,
                    value=score.value,
                    weight=reward.weight,
                    seconds=score.seconds,
                    reason=score.reason,
                    extracted=score.extracted,
                    outcome=score.outcome,
                )
                for reward, score in zip(self.rewards, verdicts, strict=True)
            )
            for verdicts in zip(*by_reward, strict=True)
        ]

    def functions(self, samples: Sequence[Sample]) -> list[Callable[..., list[float | None]]]:
        """One reward function a verifier, as TRL wants them; the first that is called judges the batch for all."""
        return [self._function(index, samples) for index in range(len(self.rewards))]

    def latest(self) -> list[tuple[ScoreRecord, ...]]:
        """The scores of the batch that was judged last."""
        return self._latest

    def _function(self, index: int, samples: Sequence[Sample]) -> Callable[..., list[float | None]]:
        def reward(completions: Sequence[Any], **columns: Any) -> list[float | None]:
            if self._scored is not completions:
                self._latest = self.score(completions, [samples[place] for place in columns[SAMPLE_COLUMN]])
                self._scored = completions
            return [row[index].value for row in self._latest]

        reward.__name__ = self.rewards[index].label
        return reward
