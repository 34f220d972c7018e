"""Judges a submission by tests: the submission in one sandbox, the tests in another, and between them plain values.

The sandbox of the tests is kept from item to item (each gets a fork there); that of a submission is made and ended with
it. Time is counted for each side by itself: a submission that hangs fails, tests that hang are the gold's fault.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from grpo_studio.verifiers.sandbox.box import Box, BoxEnded, BoxOverLimit, BoxTimeout
from grpo_studio.verifiers.sandbox.command import Limits, Way
from grpo_studio.verifiers.sandbox.inside import wire
from grpo_studio.verifiers.sandbox.level import LevelName, way

TEST_SECONDS = 4.0
MOST_HEARD = 2_000_000
SECONDS_PER_BYTE = 4e-6
_TEST_LIMITS = Limits(cpu_seconds=3600)
_idle: dict[Way, list[Box]] = {}
_lost: list[Any] = []


@dataclass(frozen=True)
class GoldTests:
    """Test code; `setup` runs before it, `entry` names the function that a `check(candidate)` is called with."""

    text: str
    setup: str = ""
    entry: str | None = None


@dataclass
class Report:
    """What came of it. `fault`, when not empty: the tests cannot be judged, and why."""

    passed: int = 0
    total: int = 0
    reason: str = ""
    fault: str = ""

    @property
    def all_passed(self) -> bool:
        return 0 < self.total == self.passed


@dataclass
class _Session:
    tests: Box
    code: Box
    seconds: float  # left for the submission
    asserts: int
    report: Report = field(default_factory=Report)
    gone: str = ""
    heard: int = 0  # bytes

    def ask(self, request: bytes) -> bytes:
        """What the submission answers; empty when it is gone, now or before."""
        if self.gone:
            return b""
        began = time.monotonic()
        try:
            self.code.send(request, began + self.seconds)
            reply = self.code.receive(began + self.seconds)
            self.heard += len(reply)
            if self.heard <= MOST_HEARD:
                return reply
            self.gone = "its values are too large"
        except BoxTimeout:
            self.gone = "over the time limit"
        except BoxOverLimit as error:
            self.gone = str(error)
        except BoxEnded as error:
            self.gone = f"the submission ended by itself: {error}"
        finally:
            self.seconds -= time.monotonic() - began
        self.code.close()
        return b""

    def run(self) -> None:
        spent = 0.0
        while True:
            began = time.monotonic()
            # What the submission sends takes time to read, which must not count as the fault of the tests.
            frame = self.tests.receive(began + TEST_SECONDS + self.heard * SECONDS_PER_BYTE - spent)
            spent += time.monotonic() - began
            kind, body = frame[:1], frame[1:]
            if kind == b"C":
                self.tests.send(self.ask(body), time.monotonic() + TEST_SECONDS)
            elif kind == b"R":
                self.count(*wire.decode(body))
            elif kind == b"D":
                self.finish(*wire.decode(body))
                return
            else:
                raise BoxEnded("the tests ended their own process")

    def count(self, line: int, passed: bool, reason: str) -> None:
        self.report.total += 1
        self.report.passed += passed
        if not passed and not self.report.reason:
            self.report.reason = f"line {line} of the tests: {self.gone or reason}"

    def finish(self, fault: str, requests: int) -> None:
        if fault:
            self.report.fault = f"the tests fail by themselves: {fault}"
        elif not requests:
            self.report.fault = "the tests never use the submission"
        elif not self.report.total and not self.gone:
            self.report.fault = "no assertion of the tests was reached"
        if self.report.passed < self.report.total:
            self.report.total = max(self.report.total, self.asserts)
        if self.gone and self.report.passed == self.report.total:
            self.report = Report(0, max(1, self.asserts), self.gone)


def run_tests(code: str, tests: GoldTests, limits: Limits, seconds: float, force: LevelName | None = None) -> Report:
    """Run the submission against the tests. Raises BoxEnded only when no sandbox can be made."""
    asserts, error = _read(tests.text, force) if len(tests.text) < wire.LARGEST // 2 else (0, "they are too long")
    if error or not asserts:
        return Report(fault=f"the tests cannot be read: {error}" if error else "there is no assertion in the tests")
    if not code.strip():
        return Report(0, asserts, "no code")
    with _tester(force) as tester, Box(way(force), "program", limits) as box:
        loaded = _load(box, code, seconds)
        if isinstance(loaded, str):
            return Report(0, asserts, loaded)
        names, functions, left = loaded
        session = _Session(tester, box, left, asserts)
        request = ("run", tests.text, tests.setup, names, functions, tests.entry)
        try:
            tester.send(wire.encode(request), time.monotonic() + TEST_SECONDS)
            session.run()
        except (BoxTimeout, BoxEnded, BoxOverLimit) as trouble:
            tester.close()
            reason = str(trouble) or f"they take more than {TEST_SECONDS:g} s of their own"
            return Report(fault=f"the tests fail by themselves: {reason}")
        return session.report


def _load(box: Box, code: str, seconds: float) -> tuple[list[str], list[str], float] | str:
    """The names and functions that the submission defined and the seconds left; or why it did not load."""
    began = time.monotonic()
    try:
        box.send(code.encode("utf-8", "surrogatepass"), began + seconds)
        answer = wire.decode(box.receive(began + seconds))
    except BoxTimeout:
        return "over the time limit before any test"
    except BoxOverLimit as error:
        return str(error)
    except BoxEnded as error:
        return f"the submission ended before any test: {error}"
    except wire.NotPlain:
        return "the submission broke the protocol"
    if type(answer) is not tuple or len(answer) != 3 or answer[0] != "loaded":
        return (
            str(answer[1])[:300] if type(answer) is tuple and len(answer) == 2 else "the submission broke the protocol"
        )
    names, functions = (
        [name for name in part if type(name) is str] if type(part) is list else [] for part in answer[1:]
    )
    return names, functions, seconds - (time.monotonic() - began)


@lru_cache(maxsize=512)  # a whole group of completions shares its tests
def _read(text: str, force: LevelName | None) -> tuple[int, str]:
    with _tester(force) as tester:
        tester.send(wire.encode(("read", text)), time.monotonic() + TEST_SECONDS)
        asserts, error = wire.decode(tester.receive(time.monotonic() + TEST_SECONDS)[1:])
        return int(asserts), str(error)


@contextlib.contextmanager
def _tester(force: LevelName | None) -> Iterator[Box]:
    """A sandbox for tests: an idle one that still answers, or a new one; put back unless it was closed."""
    made = way(force)
    waiting = _idle.setdefault(made, [])
    box: Box | None = None
    while waiting and box is None:
        box = waiting.pop()
        if not box.alive():
            box.close()
            box = None
    box = box or Box(made, "tests", _TEST_LIMITS)
    try:
        yield box
    except BaseException:
        box.close()  # an answer may still be on its way
        raise
    if box.alive():
        waiting.append(box)
    else:
        box.close()


def close_idle() -> None:
    """End the sandboxes that wait for the next item."""
    for waiting in _idle.values():
        while waiting:
            waiting.pop().close()


def _forget_idle() -> None:
    # They are the parent's: after a fork they must neither be used nor ended by the child.
    _lost.append(dict(_idle))
    _idle.clear()


atexit.register(close_idle)
os.register_at_fork(after_in_child=_forget_idle)
