"""A command's own folder: gone afterwards, also when a signal ends it. What a killed one left goes next time."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from grpo_studio.process_identity import start_token


@contextmanager
def temporary_folder(home: Path, prefix: str) -> Iterator[Path]:
    """A folder that is gone afterwards; its name is the prefix and the process that uses it."""
    for left in home.glob(f"{prefix}*"):
        found = re.fullmatch(rf"{re.escape(prefix)}([0-9]{{1,10}})-.*", left.name)
        if found and start_token(int(found[1])) is None:
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=home))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end what is done within as Ctrl-C does: the children are in sessions of their own."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
