"""Errors that say that there was no memory: known by their type or by what a library says. Pure."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

from grpo_studio.errors import OutOfMemoryError, StudioError

_SAYS = re.compile(
    r"out of memory"  # CUDA, its libraries, NCCL
    r"|(can't|cannot|could not|couldn't|unable to|failed to) allocate"  # torch on a CPU, the system's own, numpy, Rust
    r"|bad_alloc|(CUBLAS|CUDNN|CUSOLVER|CUSPARSE)_STATUS_ALLOC_FAILED|memory allocation of \d+ bytes failed",
    re.IGNORECASE,
)
_BINARY = {"bytes": 1} | {f"{letter}ib": 1 << 10 * power for power, letter in enumerate("kmgtpe", 1)}
_ASKED = (
    re.compile(r"tried to allocate (?P<count>[\d.]+) ?(?P<unit>bytes|[KMGTPE]iB)", re.IGNORECASE),
    re.compile(r"unable to allocate (?P<count>[\d.]+) ?(?P<unit>bytes|[KMGTPE]iB)", re.IGNORECASE),
    re.compile(r"memory allocation of (?P<count>\d+) (?P<unit>bytes) failed", re.IGNORECASE),
    re.compile(r"unable to mmap (?P<count>\d+) (?P<unit>bytes)", re.IGNORECASE),
)


def out_of_memory(error: BaseException) -> BaseException | None:
    """Of an error and those that it came from, the first that says that there was no memory."""
    return next((link for link in _links(error) if _says_so(link)), None)


def asked_for(error: BaseException) -> int | None:
    """How many bytes were asked for, as far as the error tells."""
    found = next((match for pattern in _ASKED if (match := pattern.search(str(error)))), None)
    return None if found is None else int(float(found["count"]) * _BINARY[found["unit"].lower()])


def _says_so(error: BaseException) -> bool:
    if isinstance(error, StudioError):  # its words are ours: what it came from decides
        return isinstance(error, OutOfMemoryError)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == errno.ENOMEM
    return isinstance(error, Exception) and _SAYS.search(str(error)) is not None


def _links(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        deliberate = link.__suppress_context__ or isinstance(link, StudioError)
        link = link.__cause__ or (None if deliberate else link.__context__)
