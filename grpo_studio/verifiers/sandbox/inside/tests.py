"""Runs tests in a process of their own, where no submitted code ever is; the names under test are `Remote`s.

It lives on from item to item, and forks a child for each. Frames in: ("read", text) or ("run", text, setup, names,
functions, entry point); out, by their first byte: `G` (asserts, error) for read; for run any number of `R` (line,
passed, reason) and `C` (for the submission; its answer comes back as a frame), then `D` (fault of the tests, requests)
or `X` when the child died.
"""

from __future__ import annotations

import builtins
import os
import random
import sys

from grpo_studio.verifiers.sandbox.inside import mini_pytest, wire
from grpo_studio.verifiers.sandbox.inside.gold import Gold, library
from grpo_studio.verifiers.sandbox.inside.remote import MODULE, Line, NotJudged, RemoteError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


_SAID_ALL = 7  # the tests may leave with a status of their own, before they are through
_KEPT = 64


class _Names(dict[str, object]):
    """The tests' global names; those that they do not define are the submission's, or a library's."""

    run: _Run

    def __missing__(self, name: str) -> object:
        return self.run.name(name)


class _Scope:
    """Counts what happens inside it as one result, and goes on after it."""

    def __init__(self, run: _Run, line: int, counts: bool) -> None:
        self.run, self.line, self.counts = run, line, counts

    def __enter__(self) -> None:
        self.run.line.asserting += self.counts

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool:
        self.run.line.asserting -= self.counts
        if isinstance(error, mini_pytest.CannotJudge):
            return False
        if isinstance(error, TypeError) and "inherit from BaseException" in str(error):
            raise mini_pytest.CannotJudge(f"line {self.line}: it expects an exception of the submission's own class")
        if error is None:
            if self.counts:
                self.run.report(self.line, True, "")
        elif not self.counts and not self.run.line.requests and not isinstance(error, (NotJudged, NameError)):
            raise mini_pytest.CannotJudge(f"line {self.line}: {type(error).__name__}: {error}"[:300])
        else:
            self.run.report(self.line, False, _explained(error))
        return True


def _explained(error: BaseException) -> str:
    if isinstance(error, AssertionError):
        return "the assertion does not hold" + (f": {error}"[:200] if str(error) else "")
    if isinstance(error, (NotJudged, RemoteError)):
        return str(error)[:300]
    return f"{type(error).__name__}: {error}"[:300]


class _Run:
    def __init__(self, line: Line, gold: Gold, names: list[str], functions: list[str], entry: str | None) -> None:
        self.line, self.gold, self.submitted = line, gold, set(names)
        self.entry = entry or (functions[-1] if functions else None)
        self.globals = _Names(
            __name__=MODULE,
            __builtins__=vars(builtins),
            __counted__=lambda line: _Scope(self, line, True),
            __statement__=lambda line: _Scope(self, line, False),
            __named__=self.submitted_name,
            __submission__=lambda: _Whole(self),
        )
        self.globals.run = self

    def name(self, name: str) -> object:
        """What a name means that the tests do not define."""
        if name in self.submitted and self.gold.is_safe(name):
            return self.submitted_name(name)
        if hasattr(builtins, name):
            raise KeyError(name)
        try:
            return library(name)
        except (KeyError, ImportError):
            return self.submitted_name(name)

    def submitted_name(self, name: str) -> object:
        if name in self.submitted:
            return self.line.ask("name", name)
        self.line.requests += 1
        raise NameError(f"the submission does not define '{name}'")

    def report(self, line: int, passed: bool, reason: str) -> None:
        wire.send(self.line.sink, b"R" + wire.encode((line, passed, reason)))

    def everything(self, setup: str) -> None:
        """The tests from top to bottom, then what a test runner would call."""
        if setup:
            exec(Gold(setup).code, self.globals)
        exec(self.gold.code, self.globals)
        if "check" in self.gold.defined and "check" not in self.gold.used:
            self.check()
        for name in self.gold.test_functions():
            self.function(name)
        self.classes()

    def check(self) -> None:
        with _Scope(self, self.gold.defined["check"].lineno, False):
            if self.entry is None:
                self.line.requests += 1
                raise NameError("the submission defines no function")
            self.globals["check"](self.submitted_name(self.entry))  # type: ignore[operator]

    def function(self, name: str) -> None:
        function: Any = self.globals[name]
        cases = getattr(function, "cases", [{}])
        missing = set(function.__code__.co_varnames[: function.__code__.co_argcount]) - set(cases[0] if cases else {})
        if missing and not function.__defaults__:
            raise mini_pytest.CannotJudge(f"{name} wants {', '.join(sorted(missing))}, which nothing provides")
        for case in cases:
            with _Scope(self, self.gold.defined[name].lineno, False):
                function(**case)

    def classes(self) -> None:
        found = [
            value for value in list(self.globals.values()) if isinstance(value, type) and value.__module__ == MODULE
        ]
        for kind in found:
            if "unittest" in sys.modules and issubclass(kind, sys.modules["unittest"].TestCase):
                self.unit_tests(kind)
            elif kind.__name__.startswith("Test"):
                for name in sorted(vars(kind)):
                    if name.startswith("test"):
                        with _Scope(self, self.gold.defined[kind.__name__].lineno, False):
                            getattr(kind(), name)()

    def unit_tests(self, kind: Any) -> None:
        unittest: Any = sys.modules["unittest"]
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(kind):
            result = unittest.TestResult()
            test.run(result)
            troubles = result.errors + result.failures
            reason = troubles[0][1].strip().splitlines()[-1][:200] if troubles else ""
            self.report(self.gold.defined[kind.__name__].lineno, result.wasSuccessful(), reason)


class _Whole:
    """The submission imported as a module."""

    def __init__(self, run: _Run) -> None:
        self._run = run

    def __getattr__(self, name: str) -> object:
        return self._run.submitted_name(name)


def main(source: int, sink: int, settings: Mapping[str, Any]) -> None:
    """Serve until the stream ends."""
    sys.modules["pytest"] = mini_pytest
    known: dict[str, Gold] = {}
    while frame := wire.receive(source):
        command, *rest = wire.decode(frame)
        if command == "read":
            wire.send(sink, b"G" + wire.encode(_read(rest[0], known)))
            continue
        child = os.fork()
        if child == 0:
            _serve(Line(source, sink), known.get(rest[0]), *rest)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != _SAID_ALL:
            wire.send(sink, b"X")


def _read(text: str, known: dict[str, Gold]) -> tuple[int, str]:
    try:
        gold = known[text] = Gold(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return 0, f"{type(error).__name__}: {error}"[:300]
    if len(known) > _KEPT:
        known.pop(next(iter(known)))
    return gold.asserts, ""


def _serve(
    line: Line, gold: Gold | None, text: str, setup: str, names: list[str], functions: list[str], entry: str | None
) -> None:
    status = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        random.seed(0)
        fault = ""
        try:
            _Run(line, gold or Gold(text), names, functions, entry).everything(setup)
        except (mini_pytest.CannotJudge, Exception) as error:
            fault = str(error) if isinstance(error, mini_pytest.CannotJudge) else f"{type(error).__name__}: {error}"
        except NotJudged:
            fault = ""
        wire.send(line.sink, b"D" + wire.encode((fault[:300], line.requests)))
        status = _SAID_ALL
    finally:
        os._exit(status)
