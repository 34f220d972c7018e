"""A judge for the rewards of the bench: what only the trainer can score abstains and has no say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from grpo_studio.config import RewardSettings
from grpo_studio.verifiers.bench.given import Progress
from grpo_studio.verifiers.contract import VerifierSpec
from grpo_studio.verifiers.judge import Judge, JudgeRequest, Score

_ELSEWHERE = Score(None, "only a run can score it: the trainer does, on its device", None, 0.0, "abstained")
ROWS_AT_ONCE: Final = 128
"""Rows between two calls of a progress; few, since a verifier that hangs takes its time limit for each."""
Columns = Mapping[str, Sequence[Any]]


class BenchJudge:
    """Scores for each reward, in their order; use it as a context manager."""

    def __init__(
        self,
        rewards: Sequence[RewardSettings],
        specs: Sequence[VerifierSpec],
        directories: Sequence[Path],
        time_limit: float,
    ) -> None:
        """Raises VerifierError for params that are not plain data."""
        self._places = [place for place, spec in enumerate(specs) if spec.place == "judge"]
        self._count = len(specs)
        requests = [JudgeRequest(rewards[place].verifier, dict(rewards[place].params)) for place in self._places]
        self._judge = Judge(requests, directories, time_limit, specs=[specs[place] for place in self._places])

    def __enter__(self) -> BenchJudge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._judge.close()

    def score(self, completions: Sequence[str], columns: Columns) -> list[list[Score]]:
        """As `Judge.score`."""
        return self._filled(self._judge.score(completions, columns), len(completions))

    def score_in_parts(
        self, completions: Sequence[str], columns: Columns, progress: Progress | None, rows: int = ROWS_AT_ONCE
    ) -> list[list[Score]]:
        """As `score`; `progress` is called before each part and at the end, and ends the work by raising."""
        total, scores = len(completions), [list[Score]() for _ in range(self._count)]
        for first in range(0, total, rows):
            if progress is not None:
                progress(first, total)
            part = slice(first, first + rows)
            found = self.score(completions[part], {name: values[part] for name, values in columns.items()})
            for told, more in zip(scores, found, strict=True):
                told += more
        if progress is not None:
            progress(total, total)
        return scores

    def score_ideal(self, columns: Columns) -> list[list[Score]]:
        """As `Judge.score_ideal`."""
        return self._filled(self._judge.score_ideal(columns), max(map(len, columns.values()), default=0))

    def _filled(self, judged: Sequence[list[Score]], rows: int) -> list[list[Score]]:
        scores = [[_ELSEWHERE] * rows for _ in range(self._count)]
        for place, found in zip(self._places, judged, strict=True):
            scores[place] = found
        return scores


def judged_here(rewards: Sequence[RewardSettings], specs: Sequence[VerifierSpec]) -> list[RewardSettings]:
    """The rewards, with weight 0 where a judge cannot score them."""
    return [
        reward if spec.place == "judge" else reward.model_copy(update={"weight": 0.0})
        for reward, spec in zip(rewards, specs, strict=True)
    ]
