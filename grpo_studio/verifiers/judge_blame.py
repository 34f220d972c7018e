"""Who is to blame for an item that failed: the rule at the top of `judge.py`, and what one call found out about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from grpo_studio.verifiers.judge_score import Outcome, Score, abstention, clean
from grpo_studio.verifiers.judge_work import Key, Task, Work

# A verifier that hangs on its own example with this many golds, and never answered, is not tried again in this call.
_HUNG_GOLDS = 3


class Blame:
    """The golds of one call that were found to be sound, or not, and the items that wait for that word."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._sound: set[Key] = set()
        self._broken: dict[Key, str] = {}
        self._probed: set[Key] = set()
        self._troubled: set[Key] = set()
        self._waiting: dict[Key, list[tuple[Task, Score]]] = {}
        self._hung: Counter[int] = Counter()
        self._answered: set[int] = set()

    def answered(self, task: Task) -> None:
        """The verifier returned, whatever it was: it does not hang on everything."""
        self._answered.add(task.request)

    def fault(self, task: Task) -> str | None:
        """Why this item need not be tried any more."""
        if self._hung[task.request] >= _HUNG_GOLDS and task.request not in self._answered:
            return "the verifier hangs on its own example, whatever the gold"
        if not self._broken:
            return None
        key = self._work.key(task)
        # A probe is sent off for an item that is only slow, too, and that alone speaks against no other item.
        return self._broken.get(key) if key in self._troubled else None

    def probe(self, task: Task) -> Task | None:
        """The probe that this item's trouble calls for, unless its gold was probed before."""
        key = self._work.key(task)
        if key in self._probed:
            return None
        self._probed.add(key)
        return Task(task.request, task.row, probe=True)

    def trouble(self, task: Task, outcome: Outcome, reason: str, seconds: float) -> Score | None:
        """The score of an item that raised, hung or ended its child; None when it has to wait for a probe."""
        failed = Score(0.0, clean(reason), None, seconds, outcome)
        key = self._work.key(task)
        self._troubled.add(key)
        if key in self._sound:
            return failed
        if (fault := self.fault(task)) is not None:
            return abstention(fault, seconds)
        self._waiting.setdefault(key, []).append((task, failed))
        return None

    def probed(self, task: Task, sound: bool, reason: str, hung: bool) -> Iterator[tuple[Task, Score]]:
        """Take in what a probe said; yields the scores of the items that waited for it."""
        key = self._work.key(task)
        if sound:
            self._sound.add(key)
        else:
            whose = "the verifier or the gold is at fault, since its own example with this gold fails too: "
            self._broken[key] = clean(whose + reason)
            self._hung[task.request] += hung
        for waiting, failed in self._waiting.pop(key, ()):
            yield waiting, failed if sound else abstention(self._broken[key], failed.seconds)
