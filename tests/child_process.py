"""Whether a process that a test watches still runs."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody has waited for does not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def ends(pid: int) -> bool:
    """Whether it ends within a few seconds."""
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)
