"""Values as bytes and back, between processes that do not trust each other: plain data, and handles on the rest.

Whatever a value claims to be, what arrives is built here from its contents: an object of the sender's own class can
arrive as a handle only. Decoding runs no code of the sender and is bounded in depth and size.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LARGEST = 4_000_000
DEEPEST = 60
LONGEST_RANGE = 1_000_000
_PLAIN_DICTS = (("collections", "Counter"), ("collections", "OrderedDict"), ("collections", "defaultdict"))
_SEQUENCES: dict[type, bytes] = {list: b"l", tuple: b"t", set: b"S", frozenset: b"Z"}
_BUILDERS: dict[bytes, type] = {tag: kind for kind, tag in _SEQUENCES.items()}


class NotPlain(Exception):
    """A value that cannot travel: not plain data, too large, or nested too deep."""


def send(channel: int, data: bytes) -> None:
    """Write one frame."""
    data = len(data).to_bytes(4, "big") + data
    while data:
        data = data[os.write(channel, data) :]


def receive(channel: int) -> bytes:
    """Read one frame; empty at the end of the stream."""
    size = int.from_bytes(_exactly(channel, 4), "big")
    return _exactly(channel, size)


def _exactly(channel: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(channel, min(size, 1 << 20))
        if not part:
            return b""
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def encode(value: Any, handle: Callable[[Any], tuple[bytes, int]] | None = None) -> bytes:
    """The bytes of a value; `handle` gives (tag, number) for what is not plain. Raises NotPlain."""
    writer = _Writer(handle)
    writer.write(value, 0)
    return b"".join(writer.parts)


class _Writer:
    def __init__(self, handle: Callable[[Any], tuple[bytes, int]] | None) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self.handle = handle

    def add(self, tag: bytes, head: bytes = b"", body: bytes = b"") -> None:
        self.size += len(head) + len(body) + 2
        if self.size > LARGEST:
            raise NotPlain("the value is too large")
        self.parts += (tag, head, b";", body)

    def text(self, tag: bytes, data: bytes) -> None:
        self.add(tag, b"%d" % len(data), data)

    def write(self, value: Any, depth: int) -> None:
        kind = type(value)
        if depth > DEEPEST:
            raise NotPlain("the value is nested too deep")
        if value is None or value is True or value is False:
            self.add(b"N" if value is None else b"T" if value else b"F")
        elif kind is int:
            self.add(b"i", b"%x" % value)
        elif kind is str:
            self.text(b"s", value.encode("utf-8", "surrogatepass"))
        elif kind is float:
            self.add(b"f", value.hex().encode())
        elif kind is complex:
            self.add(b"c", f"{value.real.hex()},{value.imag.hex()}".encode())
        elif kind is bytes or kind is bytearray:
            self.text(b"b" if kind is bytes else b"y", bytes(value))
        elif kind in _SEQUENCES:
            self.items(_SEQUENCES[kind], value, depth)
        elif kind is dict:
            self.items(b"d", [part for pair in value.items() for part in pair], depth)
        else:
            self.other(value, kind, depth)

    def items(self, tag: bytes, values: Any, depth: int) -> None:
        self.add(tag, b"%d" % len(values))
        for value in values:
            self.write(value, depth + 1)

    def other(self, value: Any, kind: type, depth: int) -> None:
        """The plain contents of known types of the standard library and NumPy; anything else is a handle."""
        place = (kind.__module__, kind.__qualname__)
        if _is(kind, *place):
            if place in _PLAIN_DICTS:
                return self.write(dict(value), depth)
            if place in _PACKED:
                return self.items(b"x", [place[1], _PACKED[place](value)], depth)
            if place[0] == "numpy" and place[1] != "ndarray" and type(value.item()) in (bool, int, float, complex):
                return self.write(value.item(), depth)
        if self.handle is None:
            raise NotPlain(f"a {kind.__qualname__:.60} is not plain data")
        tag, number = self.handle(value)
        self.add(tag, b"%d" % number)


def _is(kind: type, module: str, name: str) -> bool:
    return getattr(sys.modules.get(module), name, None) is kind


_PACKED: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("builtins", "range"): lambda value: [value.start, value.stop, value.step],
    ("collections", "deque"): list,
    ("fractions", "Fraction"): lambda value: [value.numerator, value.denominator],
    ("decimal", "Decimal"): str,
    ("datetime", "date"): lambda value: value.isoformat(),
    ("datetime", "datetime"): lambda value: value.isoformat(),
    ("datetime", "time"): lambda value: value.isoformat(),
    ("datetime", "timedelta"): lambda value: [value.days, value.seconds, value.microseconds],
    ("numpy", "ndarray"): lambda value: [value.tolist(), str(value.dtype)],
}


def _bounded(value: range, longest: int) -> range:
    if value[longest:]:
        raise NotPlain("the range is too long")  # tests make lists of it
    return value


def _unpack(name: str, packed: Any) -> Any:
    if name == "range":
        return _bounded(range(*packed), LONGEST_RANGE)
    if name == "ndarray":
        import numpy  # type: ignore[import-not-found,unused-ignore]

        if packed[1][:3] not in ("int", "uin", "flo", "boo", "com"):
            raise NotPlain("an array of objects is not plain data")
        return numpy.array(packed[0], dtype=packed[1])
    if name == "Fraction" and max(part.bit_length() for part in packed) > 10_000:
        raise NotPlain("the fraction is too large")  # to reduce it would take for ever
    module = next(module for module, known in _PACKED if known == name)
    kind = getattr(__import__(module), name)
    if name in ("date", "datetime", "time"):
        return kind.fromisoformat(packed)
    return kind(*packed) if name in ("Fraction", "timedelta") else kind(packed)


def decode(data: bytes, handle: Callable[[bytes, int], Any] | None = None) -> Any:
    """The value of `encode`; `handle` gives the object of a (tag, number). Raises NotPlain for anything malformed."""
    try:
        value, end = _Reader(data, handle).read(0, 0)
    except NotPlain:
        raise
    except Exception as error:
        raise NotPlain(f"the value cannot be read: {type(error).__name__}") from None
    if end != len(data):
        raise NotPlain("the value has a tail")
    return value


class _Reader:
    def __init__(self, data: bytes, handle: Callable[[bytes, int], Any] | None) -> None:
        self.data, self.handle = data, handle

    def read(self, start: int, depth: int) -> tuple[Any, int]:
        if depth > DEEPEST + 2:
            raise NotPlain("the value is nested too deep")
        tag, stop = self.data[start : start + 1], self.data.index(b";", start)
        head, stop = self.data[start + 1 : stop], stop + 1
        if tag in b"NTF":
            return {b"N": None, b"T": True, b"F": False}[tag], stop
        if tag == b"i":
            return int(head, 16), stop
        if tag == b"f":
            return float.fromhex(head.decode()), stop
        if tag == b"c":
            return complex(*map(float.fromhex, head.decode().split(","))), stop
        size = int(head)
        if tag in b"sby":
            raw = self.data[stop : stop + size]
            if tag == b"s":
                return raw.decode("utf-8", "surrogatepass"), stop + size
            return raw if tag == b"b" else bytearray(raw), stop + size
        if tag in b"rk":
            if self.handle is None:
                raise NotPlain("the value is not plain data")
            return self.handle(tag, size), stop
        return self.container(tag, size, stop, depth)

    def container(self, tag: bytes, size: int, stop: int, depth: int) -> tuple[Any, int]:
        values = []
        for _ in range(size):
            value, stop = self.read(stop, depth + 1)
            values.append(value)
        if tag == b"d":
            return dict(zip(values[::2], values[1::2], strict=True)), stop
        if tag == b"x":
            return _unpack(*values), stop
        return _BUILDERS[tag](values), stop
