"""The side of the tests: what stands there for the submitted code, and the line to it.

A value of the submission is a copy, built here. An object of its own making is a `Remote`: it can be used (called, its
attributes read) but not compared, since whether it equals something would be its own word.
"""

from __future__ import annotations

import builtins

from grpo_studio.verifiers.sandbox.inside import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeVar

    Kind = TypeVar("Kind")


MODULE = "tests"
MOST_ANSWERS = 10_000


class NotJudged(BaseException):
    """The value under test is not plain data. Not an Exception: tests that catch those must not catch this."""


class RemoteError(Exception):
    """An exception of the submission's own class, or of a library."""


class Line:
    """The line to the submitted code: one request at a time, each answered by one value."""

    def __init__(self, source: int, sink: int) -> None:
        self.source, self.sink = source, sink
        self.guests: list[Any] = []
        self.requests = self.answered = self.asserting = 0

    def ask(self, *request: Any) -> Any:
        """The answer as a value; raises what the code raised (by the name of a built-in exception), or NotJudged."""
        self.requests += 1
        reply = self._exchange(request)
        while reply[0] == "ask":
            self.answered += 1
            if self.answered > MOST_ANSWERS:
                raise NotJudged("the submission asks too much of the tests' objects")
            try:
                answer: tuple[Any, ...] = ("answer", _serve(*reply[1]))
            except Exception as error:
                answer = ("refuse", f"{type(error).__name__}: {error}"[:300])
            reply = self._exchange(answer)
        if reply[0] == "raise":
            raise _exception(reply[1], reply[2])
        # `assert f(xs) == sorted(xs)` must not be met by emptying xs. What works in place returns None.
        if request[0] == "call" and (not self.asserting or reply[1] is None):
            for place, value in reply[2]:
                _update(request[2][place], value)
        return reply[1]

    def _exchange(self, message: tuple[Any, ...]) -> tuple[Any, ...]:
        try:
            data = wire.encode(message, self._handle)
        except wire.NotPlain as error:
            raise NotJudged(str(error)) from None
        wire.send(self.sink, b"C" + data)
        data = wire.receive(self.source)
        if not data:
            raise NotJudged("the submission ended")
        try:
            reply = wire.decode(data, self._object)
        except wire.NotPlain as error:
            raise NotJudged(str(error)) from None
        if not _well_formed(reply):
            raise NotJudged("the submission broke the protocol")
        checked: tuple[Any, ...] = reply
        return checked

    def _handle(self, value: Any) -> tuple[bytes, int]:
        if type(value) is Remote:
            return b"r", object.__getattribute__(value, "_number")
        self.guests.append(value)
        return b"k", len(self.guests) - 1

    def _object(self, tag: bytes, number: int) -> Any:
        return Remote(self, number) if tag == b"r" else self.guests[number]


def _well_formed(reply: Any) -> bool:
    if type(reply) is not tuple or not reply:
        return False
    if reply[0] == "ask":
        return len(reply) == 2 and type(reply[1]) is tuple and len(reply[1]) > 1
    if reply[0] == "raise":
        return len(reply) == 3 and type(reply[1]) is type(reply[2]) is str
    return reply[0] == "value" and len(reply) == 3


def _exception(name: str, message: str) -> BaseException:
    if name == "NotPlain":
        return NotJudged(message)
    kind = getattr(builtins, name, None)
    text = message.removeprefix(f"{name}: ")
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            error: BaseException = kind(text)
        except Exception:  # some, such as UnicodeDecodeError, want more than a text
            error = RemoteError(message)
        return error
    return RemoteError(message)


def _update(target: Any, value: Any) -> None:
    """What a call changed of an argument, on the original."""
    if type(value) is not type(target):
        return
    if type(target) in (list, bytearray):
        target[:] = value
    elif type(target) in (dict, set):
        target.clear()
        target.update(value)


def _serve(what: str, target: Any, *rest: Any) -> Any:
    """A request of the submitted code about an object that the tests passed to it.

    Attributes only of the tests' own classes, and none with an underscore: those of functions, generators or strings
    (`format`) lead to everything that the tests know.
    """
    if what == "call":
        return target(*rest[0], **rest[1])
    if what == "length":
        return len(target)
    if what == "items":
        return [value for value, _ in zip(target, range(100_000))]  # noqa: B905  (cut on purpose)
    if what == "item":
        return target[rest[0]]
    name, owner = rest[0], target if isinstance(target, type) else type(target)
    if type(name) is not str or name.startswith("_") or name.startswith("format") or owner.__module__ != MODULE:
        raise AttributeError(f"{name!r:.60} of an object of the tests is not accessible")
    if what == "assign":
        return setattr(target, *rest)
    return getattr(target, name)


def _refuse(*ignored: Any) -> Any:
    raise NotJudged("the value under test is an object of the submission's own, not plain data")


class Remote:
    """An object of the submission."""

    __slots__ = ("_line", "_number")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, line: Line, number: int) -> None:
        object.__setattr__(self, "_line", line)
        object.__setattr__(self, "_number", number)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__name__":
            raise AttributeError(name)
        return self._line.ask("attribute", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._line.ask("assign", self, name, value)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._line.ask("call", self, args, named)

    def __getitem__(self, key: Any) -> Any:
        return self._line.ask("item", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._line.ask("put", self, key, value)

    def __delitem__(self, key: Any) -> None:
        self._line.ask("remove", self, key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._line.ask("items", self))

    def __next__(self) -> Any:
        return self._line.ask("next", self)

    def __len__(self) -> int:
        return _exactly(int, self._line.ask("length", self))

    def __bool__(self) -> bool:
        return _exactly(bool, self._line.ask("truth", self))

    def __str__(self) -> str:
        return _exactly(str, self._line.ask("text", self))

    def __repr__(self) -> str:
        return _exactly(str, self._line.ask("shown", self))

    def __float__(self) -> float:
        return _exactly(float, self._line.ask("real", self))

    def __int__(self) -> int:
        return _exactly(int, self._line.ask("whole", self))

    def __instancecheck__(self, value: Any) -> bool:
        return type(value) is Remote and _exactly(bool, self._line.ask("instance", self, value))

    def __enter__(self) -> Any:
        return self._line.ask("enter", self)

    def __exit__(self, *ignored: object) -> None:
        self._line.ask("leave", self)

    def __neg__(self) -> Any:
        return self._line.ask("neg", self)

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    # A plain operand may be what the test expects (`abs(f(x) - 3) < 1e-6`), and must not reach the submission.
    def __add__(self, other: Any) -> Any:
        return self._both("+", other)

    def __sub__(self, other: Any) -> Any:
        return self._both("-", other)

    def __mul__(self, other: Any) -> Any:
        return self._both("*", other)

    def __truediv__(self, other: Any) -> Any:
        return self._both("/", other)

    def __matmul__(self, other: Any) -> Any:
        return self._both("@", other)

    def _both(self, sign: str, other: Any) -> Any:
        return self._line.ask(sign, self, other) if type(other) is Remote else _refuse()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rpow__ = __pow__ = __abs__ = __round__ = _refuse
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __and__ = __rand__ = __or__ = __ror__ = _refuse
    __xor__ = __rxor__ = _refuse


def _exactly(kind: type[Kind], value: Any) -> Kind:
    if type(value) is not kind:
        _refuse()
    exact: Kind = value
    return exact
