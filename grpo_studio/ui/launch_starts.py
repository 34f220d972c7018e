"""Starting runs from the launch page: each press of Start begins one run, and its progress can be asked for."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from grpo_studio import supervisor
from grpo_studio.errors import ConfigError, StudioError, UsageError
from grpo_studio.looks import ScanCache, WholeLook
from grpo_studio.pair_check import check_pair
from grpo_studio.pairs import start_checked
from grpo_studio.settings import Settings
from grpo_studio.ui.readable import check_inside

log = logging.getLogger(__name__)
JOBS_KEPT = 50
ANSWER_WITHIN_S = 1.0


@dataclass
class StartJob:
    """One press of Start: what it is doing now, and how it ended."""

    message: str = ""
    fraction: float = 0.0
    run: str | None = None
    pair: str | None = None
    error: str | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def report(self, message: str, fraction: float) -> None:
        self.message, self.fraction = message, min(max(fraction, 0.0), 1.0)

    def answer(self) -> dict[str, Any]:
        if self.error is not None:
            return {"error": self.error}
        if self.run is not None:
            return {"run": self.run}
        if self.pair is not None:
            return {"pair": self.pair}
        return {"message": self.message, "fraction": self.fraction}


class Starts:
    """The presses of Start that are under way or were of late, by the key that the browser gave each."""

    def __init__(self, settings: Settings, scans: ScanCache) -> None:
        self.settings = settings
        self._scans = scans
        self._jobs: OrderedDict[str, StartJob] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, key: str, draft: Mapping[str, Any], name: str | None) -> dict[str, Any]:
        """Start a run, unless this key did already; the answer comes at once or after a moment's wait."""
        return self._begin(key, lambda job: self._submit(job, draft, name))

    def begin_pair(
        self, key: str, draft: Mapping[str, Any], field: str, values: tuple[Any, Any], name: str | None
    ) -> dict[str, Any]:
        """Start two runs that differ in one setting, as `begin` does one."""
        return self._begin(key, lambda job: self._submit_pair(job, draft, field, values, name))

    def _begin(self, key: str, work: Callable[[StartJob], None]) -> dict[str, Any]:
        with self._lock:
            job = self._jobs.get(key)
            if job is None:
                job = self._jobs[key] = StartJob()
                threading.Thread(target=self._run, args=(job, work), daemon=True).start()
            while len(self._jobs) > JOBS_KEPT:
                self._jobs.popitem(last=False)
        job.ended.wait(ANSWER_WITHIN_S)
        return job.answer()

    def progress(self, key: str) -> dict[str, Any]:
        """How far a start has come.

        Raises:
            UsageError: no start goes by that key.
        """
        job = self._jobs.get(key)
        if job is None:
            raise UsageError("this start is not known any more (the app was restarted); look at the list of runs")
        job.ended.wait(ANSWER_WITHIN_S)
        return job.answer()

    def _submit(self, job: StartJob, draft: Mapping[str, Any], name: str | None) -> None:
        report = check_inside(draft, self.settings, self._look(job))
        if report.config is None or not report.ok:
            raise ConfigError("; ".join(str(problem) for problem in report.problems))
        job.run = supervisor.submit(report.config, self.settings, name, job.report).run_id

    def _submit_pair(
        self, job: StartJob, draft: Mapping[str, Any], field: str, values: tuple[Any, Any], name: str | None
    ) -> None:
        look = self._look(job)
        checked = check_pair(draft, field, values, lambda data: check_inside(data, self.settings, look))
        job.pair = start_checked(checked, self.settings, name, job.report).id

    def _look(self, job: StartJob) -> WholeLook:
        return WholeLook(job.report, count_all=False, scans=self._scans)

    def _run(self, job: StartJob, work: Callable[[StartJob], None]) -> None:
        try:
            work(job)
        except StudioError as error:
            job.error = " ".join(str(error).split())
        except Exception as error:
            log.exception("a run could not be started")
            job.error = f"the run could not be started: {type(error).__name__}: {error}"[:500]
        finally:
            job.ended.set()
