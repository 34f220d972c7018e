"""What a run has spent so far, in time and tokens, over all its attempts. Pure.

Everything spent counts: steps that a later attempt does again, preparation and evaluations. Seconds come from the
clocks of the workers, which no change of the wall clock moves; only where none of them ran (loading, and what is going
on just now) are times of records subtracted, and then never below zero. What an attempt that was killed did after its
last recorded step is not known, and not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from grpo_studio.store.reader import RunReader

HOUR = 3600.0
TIMES = ("time/step", "time/evaluate", "time/save")
"""Metrics that are recorded together with the seconds that they count."""


@dataclass(frozen=True)
class Spent:
    """Seconds, and completion tokens and groups sampled for training, of all attempts together."""

    seconds: float = 0.0
    tokens: int = 0
    groups: int = 0

    @property
    def hours(self) -> float:
        return self.seconds / HOUR


@dataclass
class SpendingCount:
    """What was counted so far, kept by the caller between two looks; each look reads only the rows that are new."""

    _event: int = 0
    _phase: int = 0
    _group: int = 0
    _tokens: int = 0
    _groups: int = 0
    _recorded: float = 0.0
    _preparing: dict[int, float] = field(default_factory=dict)
    """When each attempt that still prepares told something last."""
    _prepared: float = 0.0
    _last_event: float | None = None

    def look(self, reader: RunReader, now: float | None = None) -> Spent:
        """What all attempts have spent; with `now` also what the newest one is doing since its last record."""
        self._read_events(reader)
        self._read_phases(reader)
        self._read_groups(reader)
        return Spent(self._prepared + self._recorded + self._since(reader, now), self._tokens, self._groups)

    def prepared(self, reader: RunReader) -> float:
        """Seconds from each attempt's start to its first step, evaluations before it included."""
        self._read_events(reader)
        return self._prepared

    def _read_events(self, reader: RunReader) -> None:
        """Add up the time from an attempt's first `preparing` to its training, or to its end."""
        for row_id, attempt, kind, ts in reader.rows(
            "SELECT id, attempt, kind, ts FROM event WHERE id > ? ORDER BY id", (self._event,)
        ):
            self._event, self._last_event = int(row_id), float(ts)
            if attempt in self._preparing:
                self._prepared += max(0.0, ts - self._preparing[attempt])
                self._preparing[attempt] = ts
            elif kind == "preparing":
                self._preparing[attempt] = ts
            if kind == "training_started":
                self._preparing.pop(attempt, None)

    def _read_phases(self, reader: RunReader) -> None:
        """Add up the seconds of steps; those of the step that an attempt goes on after belong to its preparation."""
        newest = max(self._phase, int(reader.rows("SELECT max(id) FROM phase_time")[0][0] or 0))
        for began in reader.attempts():
            seconds = reader.rows(
                "SELECT sum(seconds) FROM phase_time WHERE id > ? AND id <= ? AND +attempt = ? AND +step > ?",
                (self._phase, newest, began.attempt, began.from_step),
            )[0][0]
            self._recorded += float(seconds or 0.0)
        self._phase = newest

    def _read_groups(self, reader: RunReader) -> None:
        newest, groups, tokens = reader.rows(
            "SELECT max(g.id), count(*), sum((SELECT sum(tokens) FROM completion WHERE group_id = g.id)) "
            "FROM prompt_group g WHERE g.id > ? AND +g.split = 'train'",
            (self._group,),
        )[0]
        self._group = int(newest or self._group)
        self._groups, self._tokens = self._groups + int(groups), self._tokens + int(tokens or 0)

    def _since(self, reader: RunReader, now: float | None) -> float:
        attempt = reader.newest_attempt().attempt
        if attempt in self._preparing:
            return 0.0 if now is None else max(0.0, now - self._preparing[attempt])
        until = now if now is not None else self._last_event
        recorded = [
            float(rows[0][0])
            for name in TIMES
            if (
                rows := reader.rows(
                    "SELECT ts FROM metric WHERE name = ? AND attempt = ? ORDER BY step DESC LIMIT 1", (name, attempt)
                )
            )
        ]
        return max(0.0, until - max(recorded)) if recorded and until is not None else 0.0


def spent(reader: RunReader, now: float | None = None) -> Spent:
    """What all attempts of a run have spent; `now` (the wall clock) for one that is alive."""
    return SpendingCount().look(reader, now)
