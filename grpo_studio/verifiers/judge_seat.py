"""A judge child at work: the units it was given, and for how long it has been at the same item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grpo_studio.verifiers.judge_process import JudgeDied, JudgeProcess
from grpo_studio.verifiers.judge_work import Task, Work


class Seat:
    """One child and the unit it has, if any. `tasks` loses each item that is answered or taken away."""

    def __init__(self, setup: str, now: float) -> None:
        """Start a child. Raises JudgeDied."""
        self.process = JudgeProcess(setup)
        self.ready = False
        self.suspect = False
        self.tasks: dict[int, Task] = {}  # by their number in the child's life
        self._unit, self._first, self._next = 0, 1, 1
        self._busy = False
        self._seen, self._since = 0, now
        self.given = now

    @property
    def idle(self) -> bool:
        """Whether it can be given a unit."""
        return self.ready and not self._busy

    @property
    def current(self) -> int:
        """The item it is at; 0 when it has not yet begun with its unit."""
        at = self.process.current
        return at if at >= self._first else 0

    def silent(self, now: float) -> float:
        """For how long it has been seen at the same item."""
        at = self.process.current
        if at != self._seen:
            self._seen, self._since = at, now
        return now - self._since

    def give(self, work: Work, tasks: list[Task], now: float) -> None:
        """Hand it a unit. Raises JudgeDied."""
        self._unit += 1
        self._first, self._busy, self._since, self.given = self._next, True, now, now
        self._next += len(tasks)
        self.tasks = dict(enumerate(tasks, self._first))
        self.process.stop_after(0)
        self.process.send(work.unit(self._unit, self._first, tasks))

    def take(self, numbers: list[int]) -> list[Task]:
        """Take items away from it; those behind the ones that are left to it are not judged there any more."""
        taken = [self.tasks.pop(number) for number in numbers]
        # At least the item it is at is done or hangs, and 0 would ask for everything.
        self.process.stop_after(max(self.tasks, default=max(self.current, 1)))
        return taken

    def answers(self, document: Any) -> Iterator[tuple[Task, list[Any]]]:
        """The items that a document answers. Raises JudgeDied when it is not one of this unit."""
        try:
            unit, place, answers, done = document
            known = unit == self._unit and self._busy
            numbers = range(self._first + place, self._first + place + len(answers))
        except (TypeError, ValueError) as error:
            raise JudgeDied("the judge process wrote what is not an answer") from error
        if not known or (numbers and not self._first <= numbers[0] <= numbers[-1] < self._next):
            raise JudgeDied("the judge process wrote what is not an answer")
        for number, answer in zip(numbers, answers, strict=True):
            task = self.tasks.pop(number, None)
            if task is not None:
                yield task, answer
        if done:
            if self.tasks:
                raise JudgeDied("the judge process left items out")
            self._busy = self.suspect = False
