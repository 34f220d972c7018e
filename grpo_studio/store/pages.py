"""The rows in the pages of an SQLite file that SQLite itself refuses to read: https://www.sqlite.org/fileformat2.html.

Each page is looked at by itself, so that one that is lost takes no other with it. Pages that a transaction wrote to the
write-ahead log and that were not yet copied into the file are taken from there, as far as the log's checksums hold.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

MAGIC = b"SQLite format 3\x00"
PAGE_SIZES = tuple(2**power for power in range(9, 17))
DEFAULT_PAGE_SIZE = 4096
TABLE_LEAF, TABLE_BRANCH, INDEX_LEAF, INDEX_BRANCH = 0x0D, 0x05, 0x0A, 0x02
KINDS = (TABLE_LEAF, TABLE_BRANCH, INDEX_LEAF, INDEX_BRANCH)
MOST_PAYLOAD = 64 * 1024 * 1024
"""A cell that claims more bytes than this is damaged."""
MOST_TIMES = 10_000
"""A header that says the file had so many times the pages that are there is damaged."""
_REAL = struct.Struct(">d")
_WAL_MAGIC = 0x377F0682

Value = int | float | str | bytes | None


@dataclass(frozen=True)
class Record:
    """One row as it lies in a page; `rowid` is None in an index, as which a table without rowid is stored."""

    rowid: int | None
    values: tuple[Value, ...]


@dataclass
class Pages:
    """The pages of a file and its log, by number from 1.

    Args:
        newer: pages from the log.
        size, count: bytes of a page, and how many there are.
        expected: how many pages the file should have, as far as its header or its log says.
        wrong: numbers of pages that hold nothing that can be read, found by `rows`.
        broken_cells: rows whose page is there but which cannot be read whole, found by `rows`.
    """

    file: BinaryIO
    newer: dict[int, bytes]
    size: int
    count: int
    expected: int
    wrong: list[int] = field(default_factory=list)
    broken_cells: int = 0
    _overflow: set[int] = field(default_factory=set)

    def page(self, number: int) -> bytes:
        """The newest content of a page, empty when it is not there or the disk does not give it."""
        if number in self.newer:
            return self.newer[number]
        try:
            found = os.pread(self.file.fileno(), self.size, (number - 1) * self.size) if number >= 1 else b""
        except OSError:
            found = b""
        return found if len(found) == self.size else b""

    def rows(self) -> Iterator[Iterator[Record]]:
        """All rows that can be read, page by page: those of one page are of one table or index."""
        strange = []
        for number in range(1, self.count + 1):
            page = self.page(number)
            start = 100 if number == 1 else 0
            if len(page) != self.size or page[start] not in KINDS:
                strange.append(number)
            elif number > 1:  # the first holds no rows, but the schema
                yield self._cells(page)
        self.wrong = [number for number in strange if number not in self._overflow]

    def _cells(self, page: bytes) -> Iterator[Record]:
        kind = page[0]
        if kind == TABLE_BRANCH:
            return
        count = int.from_bytes(page[3:5], "big")
        array = 12 if kind == INDEX_BRANCH else 8
        for index in range(min(count, self.size // 4)):
            at = int.from_bytes(page[array + 2 * index : array + 2 * index + 2], "big")
            try:
                yield self._cell(page, at, kind)
            except (ValueError, IndexError, struct.error):
                self.broken_cells += 1

    def _cell(self, page: bytes, at: int, kind: int) -> Record:
        at += 4 if kind == INDEX_BRANCH else 0
        length, at = _varint(page, at)
        rowid: int | None = None
        if kind == TABLE_LEAF:
            rowid, at = _varint(page, at)
            rowid -= 2**64 if rowid >= 2**63 else 0
        return Record(rowid, _values(self._payload(page, at, length, kind)))

    def _payload(self, page: bytes, at: int, length: int, kind: int) -> bytes:
        if length > MOST_PAYLOAD:
            raise ValueError("no row is so long")
        most = self.size - 35 if kind == TABLE_LEAF else (self.size - 12) * 64 // 255 - 23
        if length <= most:
            return _exactly(page[at : at + length], length)
        least = (self.size - 12) * 32 // 255 - 23
        local = least + (length - least) % (self.size - 4)
        local = local if local <= most else least
        parts = [_exactly(page[at : at + local], local)]
        following = int.from_bytes(_exactly(page[at + local : at + local + 4], 4), "big")
        chain, missing = [], length - local
        while missing > 0:
            part = _exactly(self.page(following), self.size)
            chain.append(following)
            parts.append(part[4 : 4 + missing])
            missing -= len(parts[-1])
            following = int.from_bytes(part[:4], "big")
        if following != 0:
            raise ValueError("the row goes on after its end")
        self._overflow.update(chain)
        return b"".join(parts)


@contextmanager
def open_pages(path: Path) -> Iterator[Pages]:
    """The pages of a database file and of the log beside it.

    Raises:
        OSError: the file cannot be read.
    """
    log_path = path.with_name(f"{path.name}-wal")
    log = log_path.read_bytes() if log_path.is_file() else b""
    with path.open("rb") as file:
        header, length = file.read(100), file.seek(0, os.SEEK_END)
        size = _page_size(header, log)
        newer, committed = _committed(log, size)
        there = length // size
        told = int.from_bytes(header[28:32], "big") if header.startswith(MAGIC) else 0
        believable = told if told <= MOST_TIMES * (there + 1) else 0
        # The header counts the pages as of the last copy from the log; what the log says is newer.
        yield Pages(file, newer, size, max(there, max(newer, default=0)), max(committed or believable, there))


def _page_size(header: bytes, log: bytes) -> int:
    if header.startswith(MAGIC):
        told = int.from_bytes(header[16:18], "big")
        told = 65536 if told == 1 else told
        if told in PAGE_SIZES:
            return told
    if len(log) >= 32 and int.from_bytes(log[8:12], "big") in PAGE_SIZES:
        return int.from_bytes(log[8:12], "big")
    return DEFAULT_PAGE_SIZE


def _committed(log: bytes, size: int) -> tuple[dict[int, bytes], int]:
    """The newest committed content of pages in the log by number, and how many pages the file has with them."""
    if len(log) < 32 or int.from_bytes(log[:4], "big") | 1 != _WAL_MAGIC | 1:
        return {}, 0
    order = ">" if log[3] & 1 else "<"
    sums = _checksum(log[:24], (0, 0), order)
    committed: dict[int, bytes] = {}
    waiting: dict[int, bytes] = {}
    total = 0
    if sums != struct.unpack(">II", log[24:32]):
        return {}, 0
    for at in range(32, len(log) - size - 23, size + 24):
        frame, page = log[at : at + 24], log[at + 24 : at + 24 + size]
        number, after = struct.unpack(">II", frame[:8])
        sums = _checksum(page, _checksum(frame[:8], sums, order), order)
        if frame[8:16] != log[16:24] or sums != struct.unpack(">II", frame[16:24]):
            break
        waiting[number] = page
        if after:
            committed |= waiting
            waiting, total = {}, after
    return committed, total


def _checksum(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & 0xFFFFFFFF
        second = (second + words[index + 1] + first) & 0xFFFFFFFF
    return first, second


def _values(payload: bytes) -> tuple[Value, ...]:
    head, at = _varint(payload, 0)
    kinds = []
    while at < head:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    if at != head:
        raise ValueError("the row's header has no end")
    values = []
    for kind in kinds:
        value, at = _value(payload, at, kind)
        values.append(value)
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind >= 12:
        width = (kind - 12) // 2
        raw = _exactly(payload[at : at + width], width)
        return (raw.decode("utf-8", "replace") if kind % 2 else raw), at + width
    if kind == 0:
        return None, at
    if kind <= 6:
        width = (1, 2, 3, 4, 6, 8)[kind - 1]
        return int.from_bytes(_exactly(payload[at : at + width], width), "big", signed=True), at + width
    if kind == 7:
        return _REAL.unpack_from(payload, at)[0], at + 8
    if kind in (8, 9):
        return kind - 8, at
    raise ValueError("no such kind of value")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at]
    if value < 0x80:  # nearly always
        return value, at + 1
    value = 0
    for count in range(8):
        byte = data[at + count]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + count + 1
    return value << 8 | data[at + 8], at + 9


def _exactly(data: bytes, length: int) -> bytes:
    if len(data) != length:
        raise ValueError("the file ends too early")
    return data
