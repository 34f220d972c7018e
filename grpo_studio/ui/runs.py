"""The Runs page: every run that was recorded, newest first, fifty a page."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import gradio as gr

from grpo_studio import queries
from grpo_studio.errors import StudioError
from grpo_studio.plots.figure import tidy
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, run_folders
from grpo_studio.store.reader import RunReader
from grpo_studio.ui import frame
from grpo_studio.ui.chosen import chosen_run
from grpo_studio.ui.guard import told
from grpo_studio.ui.live import stop_run
from grpo_studio.ui.live_run import lost_records, run_name
from grpo_studio.ui.run_actions import RunActions
from grpo_studio.ui.run_menu import checkpoints_of, parent_of
from grpo_studio.ui.run_queue import queue_rows
from grpo_studio.ui.run_states import UNREADABLE, Stamp, stamp, stamp_of_files, state_of

PAGE = 50
SIZE_FOR = 30.0
"""Seconds for which the size on disk of a run that is not over is believed."""
SPARK_POINTS = 40

Answer = dict[str, Any]


def add_page(demo: gr.Blocks, settings: Settings) -> None:
    """Add the route /runs."""
    actions = RunsActions(settings)
    functions = [actions.runs_page, actions.runs_stop, *RunActions(settings).functions()]
    with demo.route("Runs", "/runs"):
        frame.add_view("runs", "runs.js", functions, settings)


class RunsActions:
    """The page's server functions; what a run recorded is read again only when its files have changed."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._rows: dict[str, tuple[Stamp, Answer]] = {}
        self._sizes: dict[str, tuple[float, int, object]] = {}

    def runs_page(self, request: Mapping[str, Any]) -> Answer:
        """One page of runs whose id, model, data set or state holds `filter`; `version` alone when nothing is new."""
        wanted = (frame.text_of(request, "filter") or "").casefold()
        page = frame.number_of(request, "page", most=10_000) or 0
        rows = [row for row in map(self._row, run_folders(self.settings.runs_dir)) if wanted in row["search"]]
        shown = [self._with_size(row) for row in rows[page * PAGE : (page + 1) * PAGE]]
        queue = self._queue()
        version = str(hash(repr((len(rows), shown, queue))))
        if request.get("version") == version:
            return {"version": version}
        return {
            "version": version,
            "now": time.time(),
            "rows": shown,
            **queue,
            "total": len(rows),
            "page": page,
            "pages": max(1, -(-len(rows) // PAGE)),
        }

    def runs_stop(self, request: Mapping[str, Any]) -> Answer:
        """Ask a run to stop; returns at once."""
        return stop_run(chosen_run(self.settings, request), self.settings)

    def _queue(self) -> Answer:
        """What waits; a queue that cannot be read costs the list of runs nothing."""
        try:
            return {"queue": queue_rows(self.settings), "queue_problem": ""}
        except StudioError as error:
            return {"queue": [], "queue_problem": told("the queue", error)}

    def _row(self, folder: RunFolder) -> Answer:
        mark, known = stamp(folder), self._rows.get(folder.run_id)
        facts = known[1] if known is not None and known[0] == mark else _facts(folder)
        self._rows[folder.run_id] = (mark, facts)
        try:
            state = state_of(folder)
        except Exception as error:
            problem = told(f"the run {folder.run_id}", error)
            row = {"problem": problem} | facts | {"state": UNREADABLE, "reason": problem, "ended": True}
            return row | {"search": f"{row['search']} {UNREADABLE}"}
        row = facts | {"state": state.state, "reason": state.reason, "ended": state.ended}
        return row | {"search": f"{row['search']} {state.state}"}

    def _with_size(self, row: Answer) -> Answer:
        """The row with its bytes on disk: counted when its files change, of a run that goes on every `SIZE_FOR` s."""
        folder, counted = RunFolder(self.settings.runs_dir / row["id"]), self._sizes.get(row["id"])
        mark = (row["ended"], stamp_of_files(folder))
        fresh = counted is not None and time.monotonic() - counted[0] < SIZE_FOR
        if counted is None or counted[2] != mark or not (fresh or row["ended"]):
            counted = (time.monotonic(), folder.size_on_disk(), mark)
            self._sizes[row["id"]] = counted
        shown = {key: value for key, value in row.items() if key != "search"}
        return shown | {"size": counted[1], "checkpoints": len(checkpoints_of(folder))}


def _facts(folder: RunFolder) -> Answer:
    """What a run is and how far it came; a damaged one is listed with its error."""
    facts: Answer = {
        "id": folder.run_id, "name": run_name(folder.run_id), "model": "", "data": "", "started": None, "step": 0,
        "steps": None, "first": None, "last": None, "spark": [], "search": folder.run_id.casefold(), "attempt": 1,
        "parent": None,
    }  # fmt: skip
    try:
        config = folder.config()
        facts |= {"model": config.model.id, "data": config.dataset.source, "steps": config.algorithm.steps}
        facts["search"] = f"{folder.run_id} {config.model.id} {config.dataset.source}".casefold()
        if parent := parent_of(folder):
            facts["parent"] = {key: parent[key] for key in ("run", "name", "step", "here")}
        with RunReader(folder.database) as reader:
            facts |= _progress(reader)
    except Exception as error:
        facts["problem"] = told(f"the run {folder.run_id}", error)
    return facts


def _progress(reader: RunReader) -> Answer:
    shown, began = queries.steps(reader, SPARK_POINTS), reader.newest_attempt()
    rewards = queries.metrics(reader, ["reward/mean"], shown)["reward/mean"].dropna()
    first, last = queries.ends(reader, "reward/mean")
    created = reader.rows("SELECT ts FROM event ORDER BY id LIMIT 1")
    lost = lost_records(reader)
    return ({"problem": lost} if lost else {}) | {
        "started": created[0][0] if created else None,
        "step": max(shown.last, began.from_step),
        "attempt": began.attempt,
        "first": tidy(first),
        "last": tidy(last),
        "spark": [tidy(value, 3) for value in rewards],
    }
