"""The children of one judge: how many there may be, what requests need of them, which fail to start."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from grpo_studio.verifiers.judge_process import JudgeDied
from grpo_studio.verifiers.judge_seat import Seat

_MOST_ACTIVE: Final = 8
_PATIENCE: Final = 0.3
_SLACK: Final = 1.0  # seconds past what a verifier says that an item of its may take
_DEATHS: Final = 2
_MANY: Final = 64
_GRACE: Final = 1.0


class Crew:
    """Children and their terms. `limits` and `patience` are in seconds, for each request.

    Of the active children, each of which works through items, there are as many as cores, and at most 8. Suspects,
    each of which sits over one item, come on top: twice as many as cores, and from 4 to 8. More at a time would take
    the processor from each other, until items that are only slow ran out of time as well.
    """

    def __init__(
        self,
        requests: Sequence[Mapping[str, Any]],
        directories: Sequence[str],
        time_limit: float,
        start_limit: float,
    ) -> None:
        """Raises TypeError or ValueError for params that are not plain data."""
        json.dumps(list(requests))
        self._requests = requests
        self._directories = list(directories)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.cores = min(cores, _MOST_ACTIVE)
        self._most_suspects = min(max(4, 2 * cores), 8)
        self.time_limit, self.start_limit = time_limit, start_limit
        self.limits = [time_limit] * len(requests)
        self.patience = [min(_PATIENCE, time_limit / 2)] * len(requests)
        self.faults: dict[int, str] = {}
        """Requests that cannot be judged at all, and why."""
        self.refused: set[int] = set()
        """Those of them whose params the verifier's own check refuses."""
        self.starts = True
        self.why = ""
        self.clock = 0.0
        self.seats: list[Seat] = []
        self._deaths: Counter[int] = Counter()

    def hire(self) -> bool:
        """Start a child, or say in `why` that it cannot be."""
        requests = [None if number in self.faults else request for number, request in enumerate(self._requests)]
        try:
            setup = json.dumps({"directories": self._directories, "requests": requests})
            self.seats.append(Seat(setup, self.clock))
        except JudgeDied as error:
            self.why = str(error)
            return False
        return True

    def admit(self, seat: Seat, document: Any) -> None:
        """Take in a child's first document: it is ready. Raises JudgeDied."""
        count = len(self._requests)
        try:
            problems = [None if one is None else str(one) for one in document["problems"]]
            seconds = [float(one) for one in document["seconds"]]
            if not len(problems) == len(seconds) == count or not all(0 <= one < math.inf for one in seconds):
                raise ValueError(document)
            refused = {int(one) for one in document["refused"]}
        except (TypeError, ValueError, KeyError) as error:
            raise JudgeDied("the judge process wrote what is not an answer") from error
        for number in range(count):
            problem = problems[number]
            if problem is not None:
                self.faults.setdefault(number, problem)
            if seconds[number]:
                self.limits[number] = max(self.time_limit, seconds[number] + _SLACK)
                self.patience[number] = max(self.patience[number], seconds[number])
        self.refused |= refused
        seat.ready = True

    def failed_to_start(self, seat: Seat, reason: str) -> bool:
        """Let go of a child that never got ready; False when a request was found to be at fault."""
        number, alive = seat.process.current - 1, seat.process.alive()
        self.dismiss(seat)
        if not 0 <= number < len(self._requests):
            self.why = reason
            return True
        # One that ended may have been killed by the machine, for another's sake.
        self._deaths[number] += _DEATHS if alive else 1
        if self._deaths[number] >= _DEATHS:
            name = self._requests[number]["name"]
            self.faults.setdefault(number, f"{name} cannot be made ready in a judge process: {reason}")
        return False

    def room_for_suspects(self) -> bool:
        """Whether one more child may sit over a single item."""
        return sum(seat.suspect for seat in self.seats) < self._most_suspects

    def dismiss(self, seat: Seat) -> None:
        """End a child and what it started."""
        self.seats.remove(seat)
        seat.process.kill()

    def clear(self) -> None:
        """End all children; those with nothing to do by themselves, together."""
        idle = [seat for seat in self.seats if seat.ready and seat.idle]
        for seat in idle:
            seat.process.ask_to_end()
        for seat in idle:
            self.seats.remove(seat)
            seat.process.kill(_GRACE)
        while self.seats:
            self.dismiss(self.seats[-1])

    def before_round(self) -> None:
        """Let go of children that ended since, and, in a fork, of those of another process."""
        self.starts = True
        for seat in list(self.seats):
            if not seat.process.ours or not seat.process.alive():
                self.dismiss(seat)

    def after_round(self, items: int) -> None:
        """Keep one child more than work at a time: with large batches, an item that hangs then costs no start-up."""
        while len(self.seats) > self.cores + 1:
            self.dismiss(next((seat for seat in self.seats if not seat.idle), self.seats[-1]))
        if items >= _MANY and len(self.seats) == self.cores:
            self.hire()
