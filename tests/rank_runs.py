"""What tests of several processes ask of a run from outside: its processes and how it was told to have ended."""

from __future__ import annotations

import os

import psutil

from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import Event, RunReader

GONE_WITHIN = 30.0
"""Seconds after a rank's death in which the whole run has to be over."""


def family(session: int) -> list[psutil.Process]:
    """All living processes of a worker's session."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess, PermissionError):
            continue
    return found


def ranks_of(session: int) -> dict[str, psutil.Process]:
    """The ranks among them, by RANK. A process that just begins may have no environment yet."""
    found = {}
    for process in family(session):
        try:
            rank = process.environ().get("RANK")
        except psutil.Error:
            continue
        if rank is not None and process.ppid() == session:
            found[rank] = process
    return found


def events_of(folder: RunFolder) -> list[Event]:
    with RunReader(folder.database) as reader:
        return reader.events()


def ended(folder: RunFolder) -> list[tuple[str, str]]:
    """The terminal events: there is to be just one."""
    return [(event.kind, event.message) for event in events_of(folder) if event.kind.startswith("run_")][1:]
