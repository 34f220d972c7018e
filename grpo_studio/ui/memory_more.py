"""What stands beside forecast and probe on the Memory page: measured peaks of a run, pairs, the cards. No gradio."""

from __future__ import annotations

import threading
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from grpo_studio import queries
from grpo_studio.errors import StudioError
from grpo_studio.memory.comparison import ROWS, comparison
from grpo_studio.memory.hand_figures import hand_figures
from grpo_studio.pair_records import Pair, pairs_of
from grpo_studio.pair_settings import value_text
from grpo_studio.pair_text import sentence
from grpo_studio.plots.figure import tidy
from grpo_studio.queries.paired import Compared
from grpo_studio.settings import Settings
from grpo_studio.shown import shown
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader
from grpo_studio.ui import strings
from grpo_studio.ui.live_run import run_name
from grpo_studio.ui.run_states import Stamp, stamp, state_of

PEAK = "memory/peak/"
PAIRS_LISTED = 30
COMPARED_FOR = 1.5
"""Seconds that one list may spend on comparing pairs that were not compared to their end yet."""
COMPARISONS_KEPT = 200
_LOOKING = threading.Lock()
"""Totals are read on by whoever asks."""

Answer = dict[str, Any]


class _Halves(NamedTuple):
    """Two runs as they are now: their comparison changes only with them."""

    a: Path
    b: Path
    stamps: tuple[Stamp, Stamp]


_comparisons: dict[_Halves, Compared] = {}


def measured_of(folder: RunFolder) -> Answer | None:
    """{"peak", "phase", "resident", "ended"}: the greatest memory of a run's phases so far; None before the first.

    `resident` is True where no device counts what is allocated and the process's memory stands for it: on a CPU.
    """
    try:
        with RunReader(folder.database) as reader:
            names = queries.metric_names(reader, f"{PEAK}*")
            with _LOOKING:
                totals = _totals_of(folder.database)
                totals.look(reader, list(names))
            counted = reader.rows("SELECT 1 FROM memory_sample WHERE allocated IS NOT NULL LIMIT 1", ())
    except StudioError:  # the Runs page tells of a damaged run; a forecast needs no records
        return None
    peaks = {name: totals.peaks[name] for name in names if totals.peaks.get(name)}
    if not peaks:
        return None
    highest = max(peaks, key=lambda name: peaks[name])
    phase = highest.removeprefix(PEAK)
    return {
        "peak": tidy(peaks[highest], 4),
        "phase": strings.load()["live"]["phases"].get(phase, shown(phase, 30)),
        "resident": not counted,
        "ended": state_of(folder).ended,
    }


@lru_cache(maxsize=32)
def _totals_of(database: Path) -> queries.Totals:
    """Reads only what is new; one for each run that is looked at."""
    return queries.Totals()


def listed_pairs(settings: Settings) -> list[Answer]:
    """The pairs, newest first; what was measured of two long runs takes its time, and may come with a later list."""
    until = time.monotonic() + COMPARED_FOR
    return [_pair(pair, until) for pair in pairs_of(settings)[:PAIRS_LISTED]]


def _pair(pair: Pair, until: float) -> Answer:
    sides = [_side(run, folder) for run, folder in zip(pair.runs, pair.folders, strict=True)]
    return {
        "id": pair.id,
        "field": shown(pair.field, 80),
        "values": [shown(value_text(value), 80) for value in pair.values],
        "sides": sides,
        "told": _told(pair, until) if all(side["state"] and side["ended"] for side in sides) else None,
    }


def _told(pair: Pair, until: float) -> str | None:
    """What A is against B in one sentence, for two runs that ended; None where there is no time or record for it."""
    a, b = pair.folders
    if a is None or b is None:
        return None
    known = _Halves(a.path, b.path, (stamp(a), stamp(b)))
    if known not in _comparisons and len(_comparisons) >= COMPARISONS_KEPT:
        _comparisons.clear()
    compared = _comparisons.setdefault(known, Compared())
    try:
        with _LOOKING, RunReader(a.database) as one, RunReader(b.database) as two:
            while not (compared.spans and compared.whole) and time.monotonic() < until:
                compared.look(one, two)
    except StudioError:  # a damaged half: its page tells of it
        return None
    return sentence(compared) if compared.spans and compared.whole else None


def _side(run: str, folder: RunFolder | None) -> Answer:
    """One run of a pair; it may be gone or damaged."""
    side: Answer = {"run": run, "name": run_name(run), "ended": True, "state": None, "measured": None}
    if folder is None:
        return side
    try:
        state = state_of(folder)
    except StudioError:
        return side
    return side | {"state": state.state, "ended": state.ended, "measured": measured_of(folder)}


@lru_cache(maxsize=1)
def cards() -> Answer:
    """The published hand figures with where a forecast differs, and PPO, DPO and GRPO beside each other."""
    methods = comparison()
    told = [method.as_dict() for method in methods]
    return {
        "hand": [figure.as_dict() for figure in hand_figures()],
        "methods": [{"title": one["title"], "source": one["source"]} for one in told],
        "rows": [{"name": row, "cells": [one.get(f"{row}_text", one[row]) for one in told]} for row in ROWS],
    }
