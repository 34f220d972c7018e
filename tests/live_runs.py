"""What tests ask of a living run from outside: begin one that goes on, its processes, its step, how it ended."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
from studio_process import as_json, tiny_train, wait_for

from grpo_studio import supervisor
from grpo_studio.store.folder import ProcessRecord, RunFolder
from grpo_studio.store.reader import Event, RunReader

GONE_WITHIN = 30.0
"""Seconds after a rank's death in which the whole run has to be over."""


def start(model: Path, home: Path, *more: str, **env: str) -> RunFolder:
    """A run of the tiny model that goes on until it is ended."""
    result = tiny_train(model, home, "--set", "algorithm.steps=100000", *more, **env)
    assert result.returncode == 0, result.stderr
    return RunFolder(home / "runs" / as_json(result)["run"])


def worker_of(folder: RunFolder) -> ProcessRecord:
    wait_for(lambda: folder.process() is not None, what="the worker")
    process = folder.process()
    assert process is not None
    return process


def step_of(folder: RunFolder) -> int:
    return supervisor.facts_of(folder).step


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
