"""The parent's side of `gym_child`: starts it, reads what it makes as it is asked for, and ends it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from grpo_studio.errors import DataError
from grpo_studio.naming import nearest_names
from grpo_studio.shown import shown

_CHILD = Path(__file__).with_name("gym_child.py")
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR", "PYTHONPATH")
ROW_LIMIT: Final = 60.0
"""Seconds that a row may take; settings can be chosen so that it would never come."""
_LONGEST_LINE: Final = 1 << 24


def ask(source: str, request: Mapping[str, Any], row_limit: float = ROW_LIMIT) -> Generator[dict[str, Any], None, None]:
    """The documents that the child answers with, as it makes them; the child ends when the walk through them does.

    Raises:
        DataError: a setting is unknown or wrong, or a row takes longer than `row_limit` seconds.
    """
    # In its own group, so that a stop signal for a worker's group does not end the reading of its data.
    with subprocess.Popen(
        [sys.executable, "-P", str(_CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=_environment(),
        process_group=0,
    ) as child:
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write(json.dumps(request).encode() + b"\n")
            for number, line in enumerate(_lines(child.stdout.fileno(), source, row_limit)):
                yield _answer(line, source, number)
        finally:
            child.kill()


def _answer(line: bytes, source: str, number: int) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(line)
    if "unknown" in document:
        hint = nearest_names(document["unknown"], document["known"])
        raise DataError(f"{source} has no setting '{shown(document['unknown'])}'; {hint}")
    if "problem" in document:
        where = f"after {number} rows of {source}" if number else f"dataset.params of {source}"
        raise DataError(f"{where}: {shown(document['problem'], 300)}")
    return document


def _lines(pipe: int, source: str, row_limit: float) -> Iterator[bytes]:
    held = bytearray()
    number, asked = 1, time.monotonic()
    while True:
        left = asked + row_limit - time.monotonic()
        if not select.select([pipe], [], [], max(0.0, left))[0]:
            raise DataError(
                f"row {number} of {source} takes longer than {row_limit:g} s; choose easier settings in dataset.params"
            )
        read = os.read(pipe, 1 << 16)
        if not read:
            return
        held += read
        *whole, rest = held.split(b"\n")
        held = bytearray(rest)
        if len(held) > _LONGEST_LINE:
            raise DataError(f"row {number} of {source} is over 16 MB; choose smaller settings in dataset.params")
        for line in whole:
            yield bytes(line)
            number, asked = number + 1, time.monotonic()


def _environment() -> dict[str, str]:
    """What the library needs, and nothing that could be a secret."""
    return {
        **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
