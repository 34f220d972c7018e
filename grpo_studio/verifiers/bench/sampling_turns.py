"""The sampling of one app: one process at a time, and one job for all who want the same samples."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from grpo_studio.errors import ModelError
from grpo_studio.settings import Settings
from grpo_studio.verifiers.bench.request import SamplingRequest
from grpo_studio.verifiers.bench.samples import SampledGroup
from grpo_studio.verifiers.bench.sampling import SamplingJob, cached_groups, start_sampling

POLL_S = 0.3
Report = Callable[[str, int, int], None]
"""What is being done, completions done, completions wanted; it raises when its caller should not go on."""


class SamplingTurns:
    """Safe to use from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._key = ""
        self._job: SamplingJob | None = None
        self._users = 0

    def sample(self, request: SamplingRequest, report: Report) -> tuple[SampledGroup, ...]:
        """The groups of a request: kept ones at once, others when it is their turn.

        The process ends with the last who waits for it: when `report` raises for all of them.

        Raises:
            StudioError: the model cannot be used, a run has the GPU, or the sampling failed.
        """
        while (kept := cached_groups(request, self._settings)) is None:
            with self._joined(request) as job:
                if job is None:
                    report("waiting", 0, request.wanted)
                    time.sleep(POLL_S)
                    continue
                while (state := job.wait(POLL_S)).state == "running":
                    report(state.message, state.done, state.wanted)
                if state.state != "done":
                    raise ModelError(state.message)
                return job.groups()
        return kept

    @contextmanager
    def _joined(self, request: SamplingRequest) -> Iterator[SamplingJob | None]:
        """The job of these samples, begun or joined; None while others are sampled."""
        key = request.key()
        with self._lock:
            if self._job is None:
                self._job, self._key = start_sampling(request, self._settings), key
            job = self._job if self._key == key else None
            self._users += job is not None
        try:
            yield job
        finally:
            if job is not None:
                self._leave(job)

    def _leave(self, job: SamplingJob) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._job = None
                job.cancel()
