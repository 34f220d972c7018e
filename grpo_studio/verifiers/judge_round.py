"""One call of a judge: hands items to children, watches them, and scores all that becomes of the items.

A child that is silent for longer than its item's verifier usually needs becomes a *suspect*: the rest of its unit goes
to the others, another child takes its place, and it has until the time limit to answer. So items that hang wait at the
same time. The probe of `Blame` is sent off at that moment too.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from grpo_studio.verifiers.judge_blame import Blame
from grpo_studio.verifiers.judge_crew import Crew
from grpo_studio.verifiers.judge_process import JudgeDied
from grpo_studio.verifiers.judge_score import Outcome, Score, abstention, score_of
from grpo_studio.verifiers.judge_seat import Seat
from grpo_studio.verifiers.judge_work import Task, Work

_TICK = 0.05
# However long this process was held up itself, a child is charged no more than this for it.
_LONGEST_TURN = 0.25
_MOST_IN_UNIT = 128
_FEW = 8  # items that are not worth starting a second child for, unless they turn out to be slow
_SLOW = 0.3
_READS_WITHIN = 10.0
_MOST_LOSSES = 3


class Round:
    """Judges `pairs` of (request, row). With `blame`, trouble is scored by the rule of `judge.py`, else as it is."""

    def __init__(self, crew: Crew, work: Work, pairs: Sequence[tuple[int, int]], blame: bool) -> None:
        self._crew, self._work = crew, work
        self._blame = Blame(work) if blame else None
        self._pairs = pairs
        self._queue = deque(Task(request, row) for request, row in pairs)
        self._left = len(self._queue)
        self._losses = 0
        self._served = 0.0  # how long there has been a child that is ready
        self.scores: dict[tuple[int, int], Score] = {}

    def run(self) -> dict[tuple[int, int], Score]:
        """All scores, by request and row."""
        last = time.monotonic()
        longest = max(_TICK, min(_LONGEST_TURN, self._crew.time_limit / 2))
        while self._left:
            self._staff()
            self._wait()
            now = time.monotonic()
            turn, last = min(now - last, longest), now
            self._crew.clock += turn
            self._served += turn * any(seat.ready for seat in self._crew.seats)
            for seat in list(self._crew.seats):
                self._watch(seat)
        for seat in self._crew.seats:
            seat.tasks.clear()  # probes whose answer nobody waits for
        return self.scores

    # Handing out

    def _staff(self) -> None:
        crew = self._crew
        # One that is still starting is waited for: it gets ready, or is lost as well.
        if self._losses >= _MOST_LOSSES and not crew.seats:
            crew.starts = False
            for request, row in self._pairs:
                self._settle(Task(request, row), abstention(f"the judge process does not start: {crew.why}"))
            return
        active = [seat for seat in crew.seats if not seat.suspect]
        busy = sum(seat.ready and not seat.idle for seat in active)
        wanted = crew.cores if len(self._queue) >= _FEW or self._served > _SLOW else 1
        for seat in active:
            if seat.idle and self._queue and busy < crew.cores:
                busy += self._give(seat)
        if not self._queue:
            self._share(active)
        elif len(active) < wanted and self._losses < _MOST_LOSSES:
            self._losses += not crew.hire()

    def _give(self, seat: Seat) -> bool:
        size = min(_MOST_IN_UNIT, -(-len(self._queue) // self._crew.cores))
        tasks: list[Task] = []
        while self._queue and len(tasks) < size:
            task = self._queue.popleft()
            fault = self._crew.faults.get(task.request) or self._work.fault(task)
            if fault is None and self._blame is not None:
                fault = self._blame.fault(task)
            if fault is None:
                tasks.append(task)
            elif task.probe:
                self._probed(task, False, fault)
            else:
                self._settle(task, abstention(fault))
        if tasks:
            self._try(seat, lambda: seat.give(self._work, tasks, self._crew.clock))
        return bool(tasks)

    def _share(self, active: Sequence[Seat]) -> None:
        """An idle child takes over half of what the busiest one has not begun."""
        if not any(seat.idle for seat in active):
            return
        busiest = max(active, key=lambda seat: len(seat.tasks))
        # An item or two further on may have begun before the child sees that they are taken.
        rest = [number for number in busiest.tasks if number > busiest.current + 2]
        if len(rest) > 1 and self._crew.clock - busiest.given > _TICK:
            self._queue.extend(busiest.take(rest[len(rest) // 2 :]))

    # Watching

    def _wait(self) -> None:
        poll = select.poll()
        seats: dict[int, Seat] = {}
        for seat in self._crew.seats:
            seats[seat.process.answers] = seat
            poll.register(seat.process.answers, select.POLLIN)
            if seat.process.unsent:
                seats[seat.process.requests] = seat
                poll.register(seat.process.requests, select.POLLOUT)
        for descriptor, _ in poll.poll(_TICK * 1000 if self._left else 0):
            seat = seats[descriptor]
            if seat not in self._crew.seats:
                continue
            if descriptor == seat.process.answers:
                self._try(seat, lambda seat=seat: self._read(seat))  # type: ignore[misc]
            else:
                self._try(seat, seat.process.flush)

    def _read(self, seat: Seat) -> None:
        for document in seat.process.read():
            if not seat.ready:
                self._crew.admit(seat, document)
                continue
            for task, answer in seat.answers(document):
                self._take_in(task, answer)

    def _watch(self, seat: Seat) -> None:
        crew = self._crew
        silent = seat.silent(crew.clock)
        if not seat.ready:
            if silent > crew.start_limit:
                self._losses += crew.failed_to_start(seat, f"it is not ready within {crew.start_limit:g} s")
            return
        if seat.idle:
            return
        task = seat.tasks.get(seat.current)
        if task is None:
            if seat.current and silent > _SLOW:  # at an item that was taken away just as it began
                crew.dismiss(seat)
                self._requeue(seat, None)
            elif silent > _READS_WITHIN:
                self._lost(seat, "the judge process does not read")
            return
        limit = crew.limits[task.request]
        if silent > limit:
            crew.dismiss(seat)
            self._requeue(seat, task)
            self._failed(task, "timeout", f"over the time limit of {limit:g} s", limit)
        elif silent > crew.patience[task.request] and not seat.suspect and crew.room_for_suspects():
            if not seat.process.alive():  # a process that the verifier forked off holds the pipe open
                return self._lost(seat, "the judge process ended")
            seat.suspect = True
            self._requeue(seat, task)
            self._probe(task)

    def _try(self, seat: Seat, act: Callable[[], None]) -> None:
        try:
            act()
        except JudgeDied as error:
            self._lost(seat, str(error))

    def _lost(self, seat: Seat, reason: str) -> None:
        """A child ended. The item it was at is tried once more: the machine may have killed it for another's sake."""
        crew = self._crew
        if not seat.ready:
            self._losses += crew.failed_to_start(seat, reason)
            return
        crew.dismiss(seat)
        task = seat.tasks.get(seat.current)
        self._requeue(seat, task)
        if task is None:
            crew.why = reason
            self._losses += 1
        elif task.deaths:
            self._failed(task, "error", reason, 0.0)
        else:
            task.deaths = 1
            self._queue.appendleft(task)

    def _requeue(self, seat: Seat, but: Task | None) -> None:
        rest = [number for number, task in seat.tasks.items() if task is not but]
        self._queue.extendleft(reversed(seat.take(rest)))

    # Scoring

    def _take_in(self, task: Task, answer: Sequence[Any]) -> None:
        try:
            kind = answer[0]
            if kind == "raised":
                return self._failed(task, "error", str(answer[2]), float(answer[4]))
            score = score_of(answer)
        except (TypeError, ValueError, IndexError) as error:
            raise JudgeDied("the judge process wrote what is not an answer") from error
        if self._blame is not None:
            self._blame.answered(task)
            if task.probe:
                return self._probed(task, kind == "ok", score.reason)
        self._settle(task, score)

    def _failed(self, task: Task, outcome: Outcome, reason: str, seconds: float) -> None:
        if self._blame is None:
            self._settle(task, Score(0.0, reason, None, seconds, outcome))
        elif task.probe:
            self._probed(task, False, reason, hung=seconds > 0 and outcome == "timeout")
        else:
            score = self._blame.trouble(task, outcome, reason, seconds)
            if score is None:
                self._probe(task)
            else:
                self._settle(task, score)

    def _probe(self, task: Task) -> None:
        if self._blame is not None and not task.probe and (probe := self._blame.probe(task)) is not None:
            self._queue.appendleft(probe)

    def _probed(self, task: Task, sound: bool, reason: str, hung: bool = False) -> None:
        assert self._blame is not None
        for waiting, score in self._blame.probed(task, sound, reason, hung):
            self._settle(waiting, score)

    def _settle(self, task: Task, score: Score) -> None:
        if not task.probe and (task.request, task.row) not in self.scores:
            self.scores[task.request, task.row] = score
            self._left -= 1
