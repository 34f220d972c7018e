"""Is the process that we started still the one with this pid? Pids are reused, so start times are compared."""

from __future__ import annotations

from pathlib import Path

import psutil

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def start_token(pid: int) -> str | None:
    """A text that differs between two processes of one pid, also across reboots and clock changes; None when dead.

    On Linux: the boot's id and the start in clock ticks since boot. Elsewhere: the creation time as psutil gives it.
    A zombie counts as dead: it does nothing any more.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        if BOOT_ID.exists():
            return None
        return _creation_time(pid)
    except ProcessLookupError:
        return None
    fields = stat.rpartition(")")[2].split()
    state, start_ticks = fields[0], fields[19]
    return None if state in "ZX" else f"{BOOT_ID.read_text().strip()}:{start_ticks}"


def is_alive(pid: int, started: str) -> bool:
    """Whether the process that began as `started` still runs under this pid."""
    return start_token(pid) == started


def is_of_this_boot(started: str) -> bool:
    """Whether a process that began as `started` can still run: the machine was not started anew since."""
    return not BOOT_ID.exists() or started.startswith(f"{BOOT_ID.read_text().strip()}:")


def began_before(pid: int, started: str) -> bool:
    """Whether a process is older than one that began as `started` in this boot; also when it is dead."""
    token = start_token(pid)
    return token is None or _moment(token) < _moment(started)


def _moment(token: str) -> float:
    return float(token.rpartition(":")[2])


def _creation_time(pid: int) -> str | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else str(process.create_time())
    except psutil.NoSuchProcess:
        return None
