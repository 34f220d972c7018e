"""Long work of the pages in the background, found again by the key that a browser gave it. No gradio."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from grpo_studio.errors import StudioError, UsageError

log = logging.getLogger(__name__)
JOBS_KEPT = 40
AT_ONCE = 2
ANSWER_WITHIN_S = 0.3

Answer = dict[str, Any]


class Cancelled(Exception):
    """The work was given up because a person asked for it."""


@dataclass
class Job:
    """One piece of work: what it does now, and how it ended.

    `message` is a word that the page has a phrase for (waiting, reading, judging, starting), or a text for a person.
    `wanted` is what `done` will come to; 0: not known.
    """

    kind: str
    message: str = "waiting"
    done: int = 0
    wanted: int = 0
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    result: Answer = field(default_factory=dict)
    cancel: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def report(self, message: str, done: int = 0, wanted: int = 0) -> None:
        """Say how far it is. Raises Cancelled when it should not go on."""
        if self.cancel.is_set():
            raise Cancelled
        self.message, self.done, self.wanted = message, done, wanted

    def judging(self, done: int, wanted: int) -> None:
        """Say how much of it is judged. Raises Cancelled when it should not go on."""
        self.report("judging", done, wanted)

    def share(self, message: str, share: float) -> None:
        """Say what part of it is done, 0 to 1. Raises Cancelled when it should not go on."""
        self.report(message, round(1000 * min(max(share, 0.0), 1.0)), 1000)

    def answer(self) -> Answer:
        """The job as the page is told of it."""
        told = {"kind": self.kind, "state": self.state, "message": self.message}
        return told | {"done": self.done, "wanted": self.wanted, "result": self.result}


Work = Callable[[Job], Answer]


class Jobs:
    """Jobs by key; a few work at once, the others wait for their turn. One object serves all browsers."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()
        self._turn = threading.BoundedSemaphore(at_once)

    def begin(self, key: str, kind: str, work: Work) -> Answer:
        """Start `work`, unless this key was begun already."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None:
                self._forget_old()
                job = self._jobs[key] = Job(kind)
                threading.Thread(target=self._run, args=(job, work), daemon=True).start()
        job.ended.wait(ANSWER_WITHIN_S)
        return job.answer()

    def progress(self, key: str) -> Answer:
        """How far the job is, or {"unknown": True} when no job goes by that key (the app was restarted)."""
        job = self._jobs.get(key)
        return {"unknown": True} if job is None else job.answer()

    def cancel(self, key: str) -> Answer:
        """Ask a job to end; it does so at its next step."""
        job = self._jobs.get(key)
        if job is None:
            return {"unknown": True}
        job.cancel.set()
        job.ended.wait(ANSWER_WITHIN_S)
        return job.answer()

    def _forget_old(self) -> None:
        """Make room for one more; those that still run are kept. Raises UsageError when all do."""
        for key in [key for key, job in self._jobs.items() if job.ended.is_set()]:
            if len(self._jobs) < JOBS_KEPT:
                return
            del self._jobs[key]
        if len(self._jobs) >= JOBS_KEPT:
            raise UsageError("too many checks wait already; wait for one to end")

    @contextmanager
    def turn(self, job: Job) -> Iterator[None]:
        """Wait until there is room for one more that works, and take it."""
        while not self._turn.acquire(timeout=0.2):
            job.report("waiting", job.done, job.wanted)
        try:
            yield
        finally:
            self._turn.release()

    def _run(self, job: Job, work: Work) -> None:
        try:
            job.result = work(job)
            job.state = "cancelled" if job.cancel.is_set() else "done"
        except Cancelled:
            job.state = "cancelled"
        except StudioError as error:
            job.state, job.message = "failed", " ".join(str(error).split())
        except Exception as error:
            log.exception("work in the background failed (%s)", job.kind)
            job.state, job.message = "failed", f"{type(error).__name__}: {error}"[:300]
        finally:
            job.ended.set()
