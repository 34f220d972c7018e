"""A worker's log: its end, whatever its size, and a bound on that size, so that no log fills a disk."""

from __future__ import annotations

import os
from pathlib import Path

MOST_BYTES = 64 * 1024
LARGEST = 64 * 1024 * 1024
"""A log past this many bytes loses its middle."""
KEPT_HEAD, KEPT_TAIL = 256 * 1024, 8 * 1024 * 1024
"""What stays of such a log: how the run was set up, and what was printed last."""


def tail(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """The last bytes of a log from a whole line on; undecodable ones are replaced. Empty when there is no file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - most_bytes))
            data = file.read(most_bytes)
    except FileNotFoundError:
        return ""
    text = data.decode("utf-8", "replace")
    return text if size <= most_bytes else text.partition("\n")[2] or text


def bound(path: Path, largest: int = LARGEST, head: int = KEPT_HEAD, tail: int = KEPT_TAIL) -> int:
    """Cut the middle out of a log that has grown past `largest` bytes; returns how many bytes went.

    Whoever writes to it goes on, since a worker's log is open for appending; lines that come in the moment between
    reading and cutting go too. The log needs no more room for that than it had.
    """
    try:
        with path.open("r+b", buffering=0) as log:
            size = log.seek(0, 2)
            if size <= largest:
                return 0
            begins = os.pread(log.fileno(), head, 0)
            begins = begins[: begins.rfind(b"\n") + 1] or begins
            ends = os.pread(log.fileno(), tail, size - tail)
            ends = ends[ends.find(b"\n") + 1 :]
            log.truncate(len(begins))
        gone = size - len(begins) - len(ends)
        with path.open("ab", buffering=0) as log:
            log.write(f"\n[{gone:,} bytes are left out here: the log is kept below {largest:,}]\n".encode() + ends)
    except FileNotFoundError:
        return 0
    return gone
