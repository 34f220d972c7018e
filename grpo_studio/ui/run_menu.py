"""What can be done with a run now, and why the rest cannot. Keys of words for the pages; no gradio here."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from grpo_studio.checkpoints import FINAL, Checkpoint, best_of, whole_checkpoints
from grpo_studio.config import RunConfig
from grpo_studio.declaration import fields_of, value_at
from grpo_studio.errors import StudioError
from grpo_studio.pair_records import record_of
from grpo_studio.plots.figure import tidy
from grpo_studio.run_state import RunState
from grpo_studio.shown import shown
from grpo_studio.store.folder import RUN_ID, RunFolder, is_run
from grpo_studio.ui.live_run import config_of, run_name

Answer = dict[str, Any]

RESUMED = frozenset({"paused", "stopped", "failed", "killed"})
"""States that a run can be resumed from, when it has a checkpoint."""
LARGEST_BRANCH_FILE = 1 << 20
CHANGES_SHOWN = 40
_LIMIT = re.compile(r"\blimits\.(hours|cost|tokens|abstained)\b")
_ABSTAINED = re.compile(r"\babstain")
_DISK = re.compile(r"\bdisk\b|\bno space left\b|\bbytes? free\b")


def actions_of(folder: RunFolder, state: RunState, waits: bool) -> Answer:
    """{name: {"allowed", "why"}} of all that can be asked for; `why` is a key of the words, empty when it is allowed.

    `waits`: the run is in the queue. One that is queued and in none, since what queued it was killed, can be put there.
    """
    found = checkpoints_of(folder)
    resumable = [one for one in found if one.manifest.resumable]
    lost = state.state == "queued" and not waits
    ended, waiting = state.ended or lost, waits
    none_whole = "" if found else ("not_saved" if ended else "not_yet")
    return {
        "resume": _allowed("") | {"step": None, "limit": None} if lost else _resume(folder, state, resumable),
        "branch": _allowed("" if resumable else (none_whole or "final_only")),
        "stop": _allowed("ended" if ended else "waiting" if waiting else ""),
        "cancel": _allowed("" if waiting else "not_waiting"),
        "evaluate": _allowed(""),
        "play": _allowed(""),
        "results": _allowed(""),
        **({"pair": _allowed("")} if record_of(folder) else {}),
        "memory": _allowed(""),
        "export": _allowed(none_whole),
        "archive": _allowed(""),
        "push": _allowed(none_whole),
        "delete": _allowed("" if ended else "waiting_delete" if waiting else "running"),
    }


def help_of(state: RunState, actions: Answer) -> str:
    """The key of the words that say what to do now, empty when nothing has to be done."""
    if state.state == "queued" and actions["resume"]["allowed"]:
        return "in_no_queue"
    if state.state not in RESUMED:
        return ""
    reason = state.reason.casefold()
    if state.state in ("paused", "stopped", "failed") and _DISK.search(reason):
        return "disk"
    if limit := limit_named(state):
        return "abstained" if limit == "limits.abstained" else "limit"
    if not actions["resume"]["allowed"]:
        return "none_resumable"
    if "out of memory" in reason:
        return "memory"
    return {"killed": "killed", "failed": "failed"}.get(state.state, "stopped")


def limit_named(state: RunState) -> str | None:
    """The setting whose limit ended the run, as its reason tells it."""
    if state.state not in ("paused", "stopped"):
        return None
    if named := _LIMIT.search(state.reason):
        return named[0]
    return "limits.abstained" if state.state == "paused" and _ABSTAINED.search(state.reason) else None


def checkpoints_of(folder: RunFolder) -> list[Checkpoint]:
    """The whole checkpoints; looked at again when one comes or goes."""
    try:
        changed = folder.checkpoints.stat().st_mtime_ns
    except FileNotFoundError:
        return []
    return list(_checkpoints(folder, changed))


@lru_cache(maxsize=256)
def _checkpoints(folder: RunFolder, changed: int) -> tuple[Checkpoint, ...]:
    return tuple(whole_checkpoints(folder))


def checkpoint_rows(folder: RunFolder) -> list[Answer]:
    """The whole checkpoints for a list, newest first."""
    found = whole_checkpoints(folder)
    best = best_of(found)
    return [
        {
            "name": one.name,
            "asked": FINAL if one.name == FINAL else str(one.step),
            "step": one.step,
            "final": one.name == FINAL,
            "resumable": one.manifest.resumable,
            "score": tidy(one.manifest.score, 4),
            "best": best is not None and one.name == best.name,
            "bytes": one.bytes,
            "saved_at": one.manifest.saved_at,
        }
        for one in reversed(found)
    ]


def parent_of(folder: RunFolder) -> Answer | None:
    """Where a branch comes from and what it changed; None for a run that is no branch."""
    path = folder.path / "branch.json"
    try:
        if path.stat().st_size > LARGEST_BRANCH_FILE:
            return None
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or not isinstance(told.get("run"), str):
        return None
    run, changes = shown(told["run"], 100), told.get("changes")
    return {
        "run": run,
        "name": run_name(run),
        "here": RUN_ID.fullmatch(run) is not None and is_run(folder.path.parent / run),
        "step": told.get("step") if isinstance(told.get("step"), int) else None,
        "changes": [change_row(one) for one in changes[:CHANGES_SHOWN]] if isinstance(changes, list) else [],
    }


def change_row(change: Any) -> Answer:
    """One changed setting as short text: {"field", "before", "after"}."""
    told = change if isinstance(change, dict) else {}
    return {"field": shown(str(told.get("field", "")), 80)} | {
        side: "" if told.get(side) is None else value_text(told[side]) for side in ("before", "after")
    }


def value_text(value: Any) -> str:
    """A setting's value on one short line."""
    if isinstance(value, str):
        return shown(value, 120)
    return shown(json.dumps(value, ensure_ascii=False, default=str), 120)


def limit_field(folder: RunFolder, state: RunState) -> Answer | None:
    """The limit that ended the run, for a dialog that asks for its new value; None when it was none."""
    field = limit_named(state)
    if field is None:
        return None
    try:
        config = config_of(folder.path)
    except StudioError:
        return None
    info, value = fields_of(RunConfig)[field], value_at(config, field)
    if value is None:
        return None
    return {"field": field, "title": info.title, "help": info.description, "value": tidy(value), **_suggested(value)}


def _suggested(value: float) -> Answer:
    """Twice of what it was, but of a share at most all."""
    return {"suggested": tidy(min(1.0, 2 * value) if value < 1 else 2 * value)}


def _resume(folder: RunFolder, state: RunState, resumable: list[Checkpoint]) -> Answer:
    if state.state == "finished":
        return _allowed("finished")
    if state.state not in RESUMED:
        return _allowed("not_ended")
    if not resumable:
        return _allowed("not_saved")
    return _allowed("") | {"step": resumable[-1].step, "limit": limit_field(folder, state)}


def _allowed(why: str) -> Answer:
    return {"allowed": not why, "why": why}
