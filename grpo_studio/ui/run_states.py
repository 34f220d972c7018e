"""States of runs for the pages; those of ended runs are remembered until their files change."""

from __future__ import annotations

from grpo_studio import supervisor
from grpo_studio.run_state import RunState
from grpo_studio.store.folder import RunFolder

UNREADABLE = "unreadable"
"""The word in the place of a state for a run whose files cannot be read."""
Stamp = tuple[int, ...]
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
    """Changes whenever the run's records or its files do.

    The folder's own time tells of a file that comes, goes or is put in another's place: process.json, a request to
    stop, the settings of a new attempt.
    """
    marks: list[int] = []
    for path in (folder.path, folder.database, folder.path / "run.db-wal", folder.process_path):
        try:
            status = path.stat()
            marks += [status.st_mtime_ns, status.st_size]
        except FileNotFoundError:
            marks += [0, 0]
    return tuple(marks)


def stamp_of_files(folder: RunFolder) -> Stamp:
    """Changes when a checkpoint, an export or an evaluation comes or goes."""
    marks: list[int] = []
    for path in (folder.checkpoints, folder.exports, folder.evaluations):
        try:
            marks.append(path.stat().st_mtime_ns)
        except FileNotFoundError:
            marks.append(0)
    return tuple(marks)
