"""Which runs are two halves of a pair, read from the `pair.json` in their folders: there is no other list of pairs.

A half may be gone, come out of an archive under another id, or never have been made: a pair is shown as long as one of
them is here. Records may come from outside, so they hold anything at all.
"""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from grpo_studio.errors import RunNotFoundError
from grpo_studio.naming import nearest_names
from grpo_studio.settings import Settings
from grpo_studio.shown import shown
from grpo_studio.store.folder import RUN_ID, RunFolder, is_run, run_folders

PAIR_FILE = "pair.json"
LARGEST_RECORD = 1 << 18
LONGEST_FIELD = 200
Side = Literal["A", "B"]
SIDES: tuple[Side, Side] = ("A", "B")


@dataclass(frozen=True)
class PairRecord:
    """What one half says: its pair, which half it is, the setting that differs, its two values, the ids of both."""

    pair: str
    side: Side
    field: str
    values: tuple[Any, Any]
    runs: tuple[str, str]

    def as_dict(self) -> dict[str, Any]:
        return {
            "pair": self.pair,
            "side": self.side,
            "field": self.field,
            "values": list(self.values),
            "runs": list(self.runs),
        }


@dataclass(frozen=True)
class Pair:
    """Two runs that were started to differ in one setting.

    Args:
        runs: their ids, A first, as they were given at the start; an imported half may have another one.
        folders: where they are, None for a half that is not here.
    """

    id: str
    field: str
    values: tuple[Any, Any]
    runs: tuple[str, str]
    folders: tuple[RunFolder | None, RunFolder | None]

    @property
    def whole(self) -> bool:
        return all(self.folders)


def record_of(folder: RunFolder) -> PairRecord | None:
    """What a run's folder says of its pair; None for a run that is no half, or whose record cannot be understood."""
    path = folder.path / PAIR_FILE
    try:
        status = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device may never end
        return None
    return _read(path, status.st_mtime_ns, status.st_size)


def pairs_of(settings: Settings) -> list[Pair]:
    """All pairs of which at least one half is here, the newest first."""
    return [_pair(halves) for halves in _halves(settings).values()]


def find_pair(settings: Settings, pair: str) -> Pair:
    """The pair by its id, by the id of one of its runs, or `latest`.

    Raises:
        RunNotFoundError: there is none.
    """
    found = pairs_of(settings)
    if not found:
        raise RunNotFoundError(f"no pair {shown(pair)!r}: none was started yet; start one with pair")
    for one in found:
        if pair in (one.id, *(folder.run_id for folder in one.folders if folder)):
            return one
    if pair == "latest":
        return found[0]
    raise RunNotFoundError(f"no pair {shown(pair)!r}; {nearest_names(pair, [one.id for one in found[:8]])}")


def same_pair(pair: Pair, settings: Settings) -> Pair:
    """The pair as it is now: read anew from its own folders alone, unless a half is not where it was.

    Raises:
        RunNotFoundError: neither half is here any more.
    """
    for folder in pair.folders:
        record = record_of(folder) if folder is not None and is_run(folder.path) else None
        if record is None or record.pair != pair.id:
            return find_pair(settings, pair.id)
    return pair


Halves = dict[str, list[tuple[RunFolder, PairRecord]]]


def _halves(settings: Settings) -> Halves:
    found: Halves = {}
    for folder in run_folders(settings.runs_dir):
        if record := record_of(folder):
            found.setdefault(record.pair, []).append((folder, record))
    return found


def _pair(halves: list[tuple[RunFolder, PairRecord]]) -> Pair:
    record = halves[0][1]
    folders = tuple(_half(halves, side, record.runs[place]) for place, side in enumerate(SIDES))
    return Pair(record.pair, record.field, record.values, record.runs, (folders[0], folders[1]))


def _half(halves: list[tuple[RunFolder, PairRecord]], side: str, run_id: str) -> RunFolder | None:
    """The half of that side: the run of that id itself before one that was imported under another."""
    of_side = [folder for folder, record in halves if record.side == side]
    return next((folder for folder in of_side if folder.run_id == run_id), next(iter(of_side), None))


@lru_cache(maxsize=2048)
def _read(path: Path, changed: int, size: int) -> PairRecord | None:
    if size > LARGEST_RECORD:
        return None
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return record_in(told)


def record_in(told: Any) -> PairRecord | None:
    """The record in what a file holds; None when it is none."""
    if not isinstance(told, dict):
        return None
    pair, side, field = (told.get(name) for name in ("pair", "side", "field"))
    values, runs = told.get("values"), told.get("runs")
    if not (isinstance(pair, str) and RUN_ID.fullmatch(pair) and side in SIDES):
        return None
    if not (isinstance(field, str) and 0 < len(field) <= LONGEST_FIELD and field.isprintable()):
        return None
    if not (isinstance(values, list) and len(values) == 2 and isinstance(runs, list) and len(runs) == 2):
        return None
    if not all(isinstance(run, str) and RUN_ID.fullmatch(run) for run in runs):
        return None
    return PairRecord(pair, side, field, (values[0], values[1]), (runs[0], runs[1]))
