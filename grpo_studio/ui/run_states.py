"""States of runs for the pages; those of ended runs are remembered until their files change."""

from __future__ import annotations

from grpo_studio import supervisor
from grpo_studio.run_state import RunState
from grpo_studio.store.folder import RunFolder

UNREADABLE = "unreadable"
"""The word in the place of a state for a run whose files cannot be read."""
Stamp = tuple[int, int, int, int, int]
_ended: dict[str, tuple[Stamp, RunState]] = {}


def state_of(folder: RunFolder) -> RunState:
    """The state of a run, cheap for one that has ended."""
    key, mark = str(folder.path), stamp(folder)
    known = _ended.get(key)
    if known is not None and known[0] == mark:
        return known[1]
    state = supervisor.state_of(folder)
    if state.ended:
        _ended[key] = (mark, state)
    else:
        _ended.pop(key, None)
    return state


def stamp(folder: RunFolder) -> Stamp:
    """Changes whenever the run's records or its process file do."""
    sizes: list[int] = []
    for path in (folder.database, folder.path / "run.db-wal", folder.process_path):
        try:
            status = path.stat()
            sizes += [status.st_mtime_ns, status.st_size]
        except FileNotFoundError:
            sizes += [0, 0]
    return (sizes[0], sizes[1], sizes[2], sizes[3], sizes[4])
