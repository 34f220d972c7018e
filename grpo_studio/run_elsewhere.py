"""Whether a worker on another machine has a run whose folder lies on a disk that both see."""

from __future__ import annotations

import time
from contextlib import suppress

from grpo_studio.store.folder import RunFolder
from grpo_studio.worker_process import on_this_host

SEEN_WITHIN = 2.0
"""Seconds in which a worker of another machine leaves a trace in the run's folder."""


def works_elsewhere(folder: RunFolder) -> bool:
    """Whether another machine, which noted a worker and not its end, writes in the folder.

    Told by its files, since not every shared disk passes locks on. Times are not compared, since two machines' clocks
    differ: they change, or they do not.
    """
    process = folder.process()
    if process is None or on_this_host(process) or process.exit_code is not None:
        return False
    first, deadline = _marks(folder), time.monotonic() + SEEN_WITHIN
    while time.monotonic() < deadline:
        time.sleep(0.1)
        if _marks(folder) != first:
            return True
    return False


def _marks(folder: RunFolder) -> list[tuple[int, int]]:
    found = []
    for path in (folder.database, folder.database.with_name("run.db-wal"), folder.log):
        with suppress(FileNotFoundError):
            status = path.stat()
            found.append((status.st_mtime_ns, status.st_size))
    return found
