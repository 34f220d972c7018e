"""What the page of a pair shows: both sides, what was measured, the figures. Plain values, ready for JSON."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from grpo_studio.errors import StudioError
from grpo_studio.pair_records import Pair
from grpo_studio.pair_settings import COSTS_ALONE, MOVES_THE_DATA, title_of, value_text
from grpo_studio.pair_text import as_dict
from grpo_studio.plots import pair as plots
from grpo_studio.plots.figure import Figure
from grpo_studio.queries.paired import ASIDE, Compared, common_steps, drawn, measures_tensors
from grpo_studio.queries.paired_samples import TIMELINE_STEPS, phase_shares, samples_of
from grpo_studio.resume_rules import changes, flat, named_by
from grpo_studio.run_facts import facts_of
from grpo_studio.run_state import RunState
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader
from grpo_studio.ui import strings
from grpo_studio.ui.live_run import config_of, lost_records, run_name
from grpo_studio.ui.run_states import UNREADABLE

Answer = dict[str, Any]
Readers = tuple[RunReader | None, RunReader | None]
SETTINGS_SHOWN = 40


@dataclass(frozen=True)
class PairSide:
    """One half: where it is (None: not here), its state (None: unreadable), whether it is in the queue."""

    side: str
    folder: RunFolder | None
    state: RunState | None
    waits: bool = False
    problem: str = ""


Sides = tuple[PairSide, PairSide]


@dataclass
class PairMemo:
    """What is known of a pair between two ticks. Whoever reads on holds the lock."""

    compared: Compared = field(default_factory=Compared)
    lock: threading.Lock = field(default_factory=threading.Lock)


@lru_cache(maxsize=32)
def memo_of(pair: str) -> PairMemo:
    """The one memo of a pair, shared by all pages that show it."""
    return PairMemo()


def about(pair: Pair, sides: Sides) -> Answer:
    """The setting that differs, and what it may change."""
    kind = "data" if named_by(MOVES_THE_DATA, pair.field) else "costs" if named_by(COSTS_ALONE, pair.field) else ""
    return {
        "pair": pair.id,
        "field": pair.field,
        "title": title_of(pair.field),
        "kind": kind,
        "values": [value_text(value) for value in pair.values],
        "ended": all(one.state is None or one.state.ended for one in sides),
    }


def sides(pair: Pair, both: Sides) -> list[Answer]:
    """State, place and progress of each half."""
    return [_side(pair, place, one) for place, one in enumerate(both)]


def _side(pair: Pair, place: int, one: PairSide) -> Answer:
    run = pair.runs[place] if one.folder is None else one.folder.run_id
    told: Answer = {
        "side": one.side,
        "run": run,
        "name": run_name(run),
        "here": one.folder is not None,
        "value": value_text(pair.values[place]),
        "state": UNREADABLE if one.state is None else one.state.state,
        "reason": one.problem if one.state is None else one.state.reason,
        "ended": one.state is None or one.state.ended,
        "waits": one.waits,
        "step": 0,
        "steps": None,
    }
    if one.folder is None:
        return told
    try:
        told |= {"step": facts_of(one.folder).step, "steps": config_of(one.folder.path).algorithm.steps}
    except StudioError as error:
        told["reason"] = told["reason"] or str(error)
    return told


def comparison(pair: Pair, both: Sides, readers: Readers, memo: PairMemo) -> Answer:
    """What was measured, the figures, and the settings that differ."""
    a, b = readers
    if a is not None and b is not None:
        memo.compared.look(a, b)
    measured = _measured(memo.compared) if a is not None and b is not None else None
    tensors = [None if reader is None else measures_tensors(reader) for reader in readers]
    return {
        "measured": measured,
        "figures": _figures(pair, readers, memo.compared if measured else Compared()),
        "tensors": tensors,
        "lost": [lost_records(reader) if reader else "" for reader in readers],
        "settings": settings_that_differ(pair, both),
    }


def _measured(compared: Compared) -> Answer:
    """As the command tells it, with phases by the names that the page calls them."""
    told = as_dict(compared)
    names = strings.load()["live"]["phases"]
    for side in told["sides"]:
        side["peak_phase"] = names.get(side["peak_phase"], side["peak_phase"])
    return told


def settings_that_differ(pair: Pair, both: Sides) -> list[Answer] | None:
    """All of them, the one that is meant to first; None while a half is not here or cannot be read."""
    configs = []
    for one in both:
        if one.folder is None:
            return None
        try:
            configs.append(flat(config_of(one.folder.path)))
        except StudioError:
            return None
    rows = changes(configs[0], configs[1])
    rows.sort(key=lambda row: not _is_part(pair.field, row.field))
    return [
        {
            "field": row.field,
            "title": title_of(row.field),
            "meant": _is_part(pair.field, row.field),
            "values": [value_text(row.before), value_text(row.after)],
        }
        for row in rows[:SETTINGS_SHOWN]
    ]


def _is_part(field: str, row: str) -> bool:
    """Whether a row of the flat settings is the one that differs: a list or map of settings is one row there."""
    return row == field or field.startswith(f"{row}.")


def _figures(pair: Pair, readers: Readers, compared: Compared) -> dict[str, Figure]:
    words = strings.load()["pair"]["traces"]
    names = strings.load()["live"]["phases"]
    called = {"a": f"A {value_text(pair.values[0])}", "b": f"B {value_text(pair.values[1])}"}
    shown = common_steps(*readers)
    a, b = (drawn(reader, shown) for reader in readers)
    first = compared.difference.step if compared.difference else compared.rewards_differ
    size, unit = plots.unit_of(
        max((float(frame["peak"].max()) for frame in (a, b) if frame["peak"].notna().any()), default=0.0)
    )
    peaks = [
        {phase: value / size for phase, value in side.peaks.items() if phase not in (*ASIDE, "other")}
        for side in (compared.a, compared.b)
    ]
    figures = {
        "reward": plots.with_step_marked(
            plots.over_steps(a["reward"], b["reward"], pair.id, called), first, words["first_difference"]
        ),
        "peak": plots.over_steps(
            a["peak"] / size, b["peak"] / size, pair.id, called, ticksuffix=unit, rangemode="tozero"
        ),
        "seconds": plots.over_steps(a["seconds"], b["seconds"], pair.id, called, ticksuffix=" s", rangemode="tozero"),
        "phases": plots.by_phase(peaks[0], peaks[1], pair.id, called | {"unit": unit}, names),
    }
    return figures | {"timeline": _timeline(pair, readers, compared.common, called | {"sample": words["sample"]})}


def _timeline(pair: Pair, readers: Readers, common: int, words: dict[str, str]) -> Figure:
    """The last steps that both have done."""
    a, b = readers
    if a is None or b is None or common == 0:
        return {"data": [], "layout": {}}
    first = max(1, common - TIMELINE_STEPS + 1)
    frames = [samples_of(reader, first, common) for reader in (a, b)]
    seconds = [phase_shares(reader, first, common) for reader in (a, b)]
    return plots.timeline(frames[0], frames[1], seconds, pair.id, words)
