"""What whoever waits for a worker looks at meanwhile: is its time up, is its log too large?

Time is counted from when a thing was first seen, by a clock that nobody sets: a wall clock may be set back or forward.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from grpo_studio.errors import StoreError
from grpo_studio.run_state import TERMINAL
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.log import bound
from grpo_studio.store.reader import RunReader

END_WITHIN = 30.0
"""Seconds that a worker has to be gone once it has told its end; less when the grace after a stop is less."""
LOOK_EVERY = 2.0
"""Seconds between two looks into the record."""


class Watch:
    """Over one attempt of a run. Whoever waits calls `time_is_up` again and again."""

    def __init__(
        self, folder: RunFolder, settings: Settings, attempt: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._attempt = attempt
        self._grace = settings.grace_seconds
        self._clock = clock
        self._stop_seen: float | None = None
        self._end_seen: float | None = None
        self._looked: float | None = None

    def time_is_up(self) -> bool:
        """Whether the worker is to be killed: it ignores a stop, or hangs after it has told its end."""
        now = self._clock()
        self.bound_log()
        if not self._folder.stop_request.exists():
            self._stop_seen = None
        elif self._stop_seen is None:
            self._stop_seen = now
        if self._end_seen is None and (self._looked is None or now - self._looked >= LOOK_EVERY):
            self._looked = now
            self._end_seen = now if self._has_told_its_end() else None
        if self._stop_seen is not None and now - self._stop_seen > self._grace:
            return True
        return self._end_seen is not None and now - self._end_seen > min(END_WITHIN, self._grace)

    def bound_log(self) -> None:
        """Keep the worker's log within its bound; it is not worth an error."""
        try:
            bound(self._folder.log)
        except OSError:
            return

    def _has_told_its_end(self) -> bool:
        try:
            with RunReader(self._folder.database) as reader:
                found = reader.rows(
                    "SELECT kind FROM event WHERE attempt = ? ORDER BY id DESC LIMIT 20", (self._attempt,)
                )
        except StoreError:
            return False
        return any(kind in TERMINAL for (kind,) in found)
