"""The side of the submitted code: loads it, then answers requests for values. It never sees what is expected of them.

Nothing here needs to be out of the code's reach. All that can be forged is a value, and to forge the right one is to
have computed it.
"""

from __future__ import annotations

import os
import sys

from grpo_studio.verifiers.sandbox.inside import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MOST_ITEMS = 100_000
NAMES = 2000


class Guest:
    """An object of the tests, as the submitted code sees it: its value stays there."""

    __slots__ = ("_host", "_number")

    def __init__(self, host: Host, number: int) -> None:
        object.__setattr__(self, "_host", host)
        object.__setattr__(self, "_number", number)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._host.ask(("call", self, args, named))

    def __getattr__(self, name: str) -> Any:
        return self._host.ask(("attribute", self, name))

    def __setattr__(self, name: str, value: Any) -> None:
        self._host.ask(("assign", self, name, value))

    def __len__(self) -> int:
        return int(self._host.ask(("length", self)))

    def __iter__(self) -> Any:
        return iter(self._host.ask(("items", self)))

    def __getitem__(self, key: Any) -> Any:
        return self._host.ask(("item", self, key))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guest) and other._number == self._number

    def __hash__(self) -> int:
        return hash(self._number)


class Host:
    """Serves the requests of the tests for one submission."""

    def __init__(self, source: int, sink: int) -> None:
        self.source, self.sink = source, sink
        self.objects: list[Any] = []
        self.names: dict[str, Any] = {}

    def load(self, text: str) -> None:
        """Run the submission; tell which names it defined, or why it failed."""
        module = type(sys)("submission")
        sys.modules["submission"] = module
        self.names = module.__dict__
        try:
            exec(compile(text, "<submission>", "exec"), self.names)
            found = [name for name in self.names if isinstance(name, str) and not name.startswith("__")]
            functions = [name for name in found if type(self.names[name]) is type(_is_guest)]
            answer: tuple[Any, ...] = ("loaded", found[-NAMES:], functions[-NAMES:])
        except BaseException as error:
            answer = ("failed", _described(error))
        wire.send(self.sink, wire.encode(answer))

    def serve(self) -> None:
        """Answer until the stream ends."""
        while request := self.next_request():
            self.reply(request)

    def next_request(self) -> tuple[Any, ...] | None:
        data = wire.receive(self.source)
        if not data:
            return None
        request: tuple[Any, ...] = wire.decode(data, self.object)
        return request

    def reply(self, request: tuple[Any, ...]) -> None:
        try:
            if request[0] == "call":
                answer = self.call(*request[1:])
            else:
                answer = ("value", _REQUESTS[request[0]](self, *request[1:]), ())
            data = wire.encode(answer, self.handle)
        except wire.NotPlain as error:
            data = wire.encode(("raise", "NotPlain", str(error)))
        except BaseException as error:
            data = wire.encode(("raise", type(error).__name__, _described(error)))
        wire.send(self.sink, data)

    def call(self, target: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The result, and those arguments that the call changed: the tests hold the originals."""
        places = [place for place, value in enumerate(args) if type(value) in (list, dict, set, bytearray)]
        before = {place: repr(args[place]) for place in places}
        result = target(*args, **named)
        changed = [(place, args[place]) for place in places if repr(args[place]) != before[place]]
        return "value", result, changed

    def ask(self, question: tuple[Any, ...]) -> Any:
        """Ask the tests about an object of theirs, serving them meanwhile (they may call the submission for it)."""
        wire.send(self.sink, wire.encode(("ask", question), self.handle))
        while True:
            request = self.next_request()
            if request is None:
                os._exit(0)
            if request[0] == "answer":
                return request[1]
            if request[0] == "refuse":
                raise TypeError(request[1])
            self.reply(request)

    def handle(self, value: Any) -> tuple[bytes, int]:
        if _is_guest(value):
            return b"k", value._number
        self.objects.append(value)
        return b"r", len(self.objects) - 1

    def object(self, tag: bytes, number: int) -> Any:
        return Guest(self, number) if tag == b"k" else self.objects[number]


def _is_guest(value: Any) -> bool:
    return type(value) is Guest


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:300].encode("utf-8", "replace").decode()
    except BaseException:
        return "an exception that cannot be shown"


def _items(values: Any) -> list[Any]:
    found = []
    for value in values:
        found.append(value)
        if len(found) > MOST_ITEMS:
            raise wire.NotPlain(f"more than {MOST_ITEMS} items")
    return found


_REQUESTS: dict[str, Any] = {
    "name": lambda host, name: host.names[name],
    "attribute": lambda host, target, name: getattr(target, name),
    "assign": lambda host, target, name, value: setattr(target, name, value),
    "item": lambda host, target, key: target[key],
    "put": lambda host, target, key, value: target.__setitem__(key, value),
    "remove": lambda host, target, key: target.__delitem__(key),
    "items": lambda host, target: _items(target),
    "next": lambda host, target: next(target),
    "length": lambda host, target: len(target),
    "text": lambda host, target: str(target),
    "shown": lambda host, target: repr(target),
    "truth": lambda host, target: bool(target),
    "real": lambda host, target: float(target),
    "whole": lambda host, target: int(target),
    "instance": lambda host, kind, target: isinstance(target, kind),
    "enter": lambda host, target: target.__enter__(),
    "leave": lambda host, target: target.__exit__(None, None, None),
    "+": lambda host, first, second: first + second,
    "-": lambda host, first, second: first - second,
    "*": lambda host, first, second: first * second,
    "/": lambda host, first, second: first / second,
    "@": lambda host, first, second: first @ second,
    "neg": lambda host, target: -target,
}


def main(source: int, sink: int, settings: Mapping[str, Any]) -> None:
    """Load the submission that comes first, then serve."""
    host = Host(source, sink)
    host.load(wire.receive(source).decode("utf-8", "surrogatepass"))
    host.serve()
