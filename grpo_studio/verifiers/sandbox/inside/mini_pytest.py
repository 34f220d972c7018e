"""As much of pytest as tests of one function use: `raises`, `approx`, `mark.parametrize`, `fail`, `skip`."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class CannotJudge(BaseException):
    """The tests use something that cannot be judged apart from the submission: the gold is at fault."""


class raises:
    """The block, or the call, must raise."""

    def __init__(self, expected: Any, *call: Any, match: str | None = None, **named: Any) -> None:
        kinds = expected if isinstance(expected, tuple) else (expected,)
        if not all(isinstance(kind, type) for kind in kinds):
            raise CannotJudge("the tests expect an exception of the submission's own class")
        self.kinds, self.match = kinds, match
        self.value: BaseException | None = None
        if call:
            with self:
                call[0](*call[1:], **named)

    def __enter__(self) -> raises:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, ignored: object) -> bool:
        self.value = error
        if error is None:
            raise AssertionError(f"nothing was raised; expected {self.kinds[0].__name__}")
        if not isinstance(error, self.kinds):
            return False
        if self.match is not None:
            import re

            assert re.search(self.match, str(error)), f"{error} does not match {self.match}"
        return True


class approx:
    """Equal within a tolerance: numbers, and lists, tuples and dicts of them."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None) -> None:
        self.expected, self.relative, self.absolute = expected, rel, abs

    def __eq__(self, other: object) -> bool:
        return self._equal(self.expected, other)

    def _equal(self, expected: Any, found: Any) -> bool:
        if isinstance(expected, (list, tuple)):
            return (
                type(found) is type(expected) and len(found) == len(expected) and all(map(self._equal, expected, found))
            )
        if isinstance(expected, dict):
            return (
                isinstance(found, dict)
                and found.keys() == expected.keys()
                and all(self._equal(value, found[key]) for key, value in expected.items())
            )
        if isinstance(expected, (int, float)) and isinstance(found, (int, float)):
            absolute = 1e-12 if self.absolute is None else self.absolute
            relative = (1e-6 if self.absolute is None else 0.0) if self.relative is None else self.relative
            return expected == found or math.isclose(expected, found, rel_tol=relative, abs_tol=absolute)
        return bool(expected == found)


class _Mark:
    def parametrize(self, names: Any, rows: Any, **ignored: Any) -> Callable[[Any], Any]:
        keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

        def mark(function: Any) -> Any:
            cases = [dict(zip(keys, row if len(keys) > 1 else [row], strict=True)) for row in rows]
            function.cases = [old | new for old in getattr(function, "cases", [{}]) for new in cases]
            return function

        return mark

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def mark(*args: Any, **ignored: Any) -> Any:
            return args[0] if len(args) == 1 and callable(args[0]) else (lambda function: function)

        return mark


mark = _Mark()


def fixture(*ignored: Any, **named: Any) -> Any:
    """Fixtures are not known here."""
    raise CannotJudge("the tests use pytest fixtures")


def fail(reason: str = "") -> None:
    """Fail this test."""
    raise AssertionError(reason)
