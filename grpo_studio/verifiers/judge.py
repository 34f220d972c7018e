"""Judges completions in child processes, with a hard time limit for each item. Nothing a verifier does escapes.

Who is to blame decides the score. When an item raises, runs out of time or ends the child, the same verifier judges
an *accepted example of its own* with the same gold:
- that is scored: the verifier and the gold are fine, so the completion is what cannot be judged: 0;
- that fails as well, or abstains: the gold or the verifier is at fault: abstain.
A child that died is given the item once more first, since the machine may have killed it (memory) for another's sake.
An accepted example is used because a rejected one may be dismissed before the gold is read.

The work of a call is shared among as many children as there are cores; `judge_round` says how, and how items that hang
are told from the rest. What a verifier loads lazily belongs into its `warm` hook: its first item pays for it otherwise.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers.contract import VerifierSpec
from grpo_studio.verifiers.discovery import discover
from grpo_studio.verifiers.judge_crew import Crew
from grpo_studio.verifiers.judge_round import Round
from grpo_studio.verifiers.judge_score import OUTCOMES, JudgeRequest, Outcome, Score
from grpo_studio.verifiers.judge_work import Work, accepted_example

START_LIMIT = 60.0  # the imports of slow verifiers (sympy) on a busy machine
__all__ = ["OUTCOMES", "START_LIMIT", "Judge", "JudgeRequest", "Outcome", "Score"]


class Judge:
    """Judges for a fixed list of requests; use it as a context manager. Safe to call from any thread.

    Children are started as there is work for them, and again after an item that had to be killed. They die with this
    process. A verifier whose `seconds` hook asks for more than the time limit is given that and a second more.
    """

    def __init__(
        self,
        requests: Sequence[JudgeRequest],
        directories: Sequence[Path],
        time_limit: float = 5.0,
        start_limit: float = START_LIMIT,
        specs: Sequence[VerifierSpec] | None = None,
    ) -> None:
        """Find the verifiers, unless their `specs` are given. `time_limit` is in seconds for one completion and one
        verifier, `start_limit` for making all verifiers ready.

        Raises VerifierError for a verifier that is not there or not for judges, and for params that are not plain data.
        """
        if specs is None:
            registry = discover(directories)
            specs = [registry.get(request.verifier) for request in requests]
        self._specs = list(specs)
        for spec in self._specs:
            if spec.place != "judge":
                raise VerifierError(f"{spec.name} is scored by the trainer on its device, not by a judge process")
        wanted = [
            {"path": str(spec.path), "name": spec.name, "params": dict(request.params)}
            for spec, request in zip(self._specs, requests, strict=True)
        ]
        try:
            self._crew = Crew(wanted, [str(Path(one).resolve()) for one in directories], time_limit, start_limit)
        except (TypeError, ValueError) as error:
            raise VerifierError(f"the params of a verifier must be plain data: {error}") from error
        self._examples = [accepted_example(spec) for spec in self._specs]
        self._lock = threading.Lock()

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the children, once a call that is under way has ended. A later `score` would start others."""
        with self._lock:
            self._crew.clear()

    def score(self, completions: Sequence[Any], columns: Mapping[str, Sequence[Any]]) -> list[list[Score]]:
        """The scores of each request, in order, for each completion (text, chat messages, content blocks or None).

        `columns` hold one value for each completion. Raises VerifierError only for columns of another length; all
        trouble of verifiers, golds and completions is in the scores.
        """
        return self._score_all(self._work(completions, columns), blame=True)

    def score_ideal(self, columns: Mapping[str, Sequence[Any]]) -> list[list[Score]]:
        """The scores of each request for the completion that it calls ideal for each row's gold.

        One that has no such completion, or cannot make it for this gold, abstains. Trouble is scored as it is: there
        is no completion to blame.
        """
        return self._score_all(self._work(None, columns), blame=False)

    def score_each(
        self,
        requests: Sequence[int],
        completions: Sequence[Any],
        columns: Mapping[str, Sequence[Any]],
        *,
        blame: bool = True,
    ) -> list[Score]:
        """The score of each completion by one request, whose place is given. Without `blame`, all trouble is 0."""
        work = self._work(completions, columns)
        pairs = [(request, row) for row, request in zip(range(work.rows), requests, strict=True)]
        scores = self._run(work, pairs, blame)
        return [scores[pair] for pair in pairs]

    def unable(self) -> dict[int, str]:
        """The requests on which no verifier had a word in the last call, and why. A refusal by its `check` is one."""
        if not self._crew.starts:
            return dict.fromkeys(range(len(self._specs)), f"the judge process does not start: {self._crew.why}")
        return {number: why for number, why in self._crew.faults.items() if number not in self._crew.refused}

    def pids(self) -> list[int]:
        """The process ids of the children."""
        return [seat.process.pid for seat in self._crew.seats]

    def _work(self, completions: Sequence[Any] | None, columns: Mapping[str, Sequence[Any]]) -> Work:
        return Work(self._specs, self._examples, completions, columns)

    def _score_all(self, work: Work, blame: bool) -> list[list[Score]]:
        # Row by row, so that a text is sent once for all verifiers.
        pairs = [(request, row) for row in range(work.rows) for request in range(len(self._specs))]
        scores = self._run(work, pairs, blame)
        return [[scores[request, row] for row in range(work.rows)] for request in range(len(self._specs))]

    def _run(self, work: Work, pairs: Sequence[tuple[int, int]], blame: bool) -> dict[tuple[int, int], Score]:
        with self._lock:
            try:
                self._crew.before_round()
                scores = Round(self._crew, work, pairs, blame).run()
                self._crew.after_round(len(pairs))
            except BaseException:
                self._crew.clear()  # Answers still in the pipe must not be taken for those of the next call.
                raise
        return scores
