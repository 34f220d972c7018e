"""The Live page: one run as it happens. Its script asks `live_tick` every two seconds and gets only what is new."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import gradio as gr

from grpo_studio import queries, supervisor
from grpo_studio.errors import RunNotFoundError, StoreError
from grpo_studio.job_queue import JobQueue
from grpo_studio.run_state import RunState
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, run_folders
from grpo_studio.store.log import tail
from grpo_studio.store.reader import RunReader
from grpo_studio.ui import frame, live_charts, live_view
from grpo_studio.ui.chosen import chosen_run
from grpo_studio.ui.guard import told
from grpo_studio.ui.live_run import LiveRun, config_of, run_name
from grpo_studio.ui.live_view import Answer
from grpo_studio.ui.run_actions import RunActions
from grpo_studio.ui.run_states import UNREADABLE, state_of

MEMORY_EVERY = 8.0
"""Seconds of samples after which the memory chart is drawn anew although no step has ended."""
PICKER_RUNS = 50


def add_view(settings: Settings) -> None:
    """Put the page into the current Blocks context."""
    pages = LiveActions(settings)
    functions: list[frame.ServerFunction] = [
        pages.live_tick,
        pages.live_step,
        pages.live_group,
        pages.live_text,
        pages.live_log,
        pages.live_runs,
        pages.live_stop,
        *RunActions(settings).functions(),
    ]
    frame.add_view("live", "live.js", functions, settings)


def add_page(demo: gr.Blocks, settings: Settings) -> None:
    """Add the route /live."""
    with demo.route("Live", "/live"):
        add_view(settings)


class LiveActions:
    """The page's server functions. Requests come from anybody: ids are looked up, never joined to a path unchecked."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def live_tick(self, request: Mapping[str, Any]) -> Answer:
        """What is new since `cursor`; with no cursor everything; with nothing new only the cursor.

        Parts of an answer: `about` (first time), `strip`, `charts`, `groups`, `memory`, `memory_facts`,
        `events`.
        """
        folder = self._folder(request)
        if folder is None:
            return {"empty": True}
        known = request.get("cursor") if isinstance(request.get("cursor"), Mapping) else None
        state = state_of(folder)
        with RunReader(folder.database) as reader, reader.snapshot():
            attempt = reader.newest_attempt().attempt
            cursor: Answer = asdict(reader.cursor()) | {
                "attempt": attempt, "state": state.state, "reason": state.reason,
            }  # fmt: skip
            if known is not None and all(known.get(key) == value for key, value in cursor.items()):
                return {"cursor": dict(known)}
            run = self._live(folder, state)
            return _news(run, reader, cursor, known or {})

    def live_step(self, request: Mapping[str, Any]) -> Answer:
        """The group strips of a step."""
        run = self._run(request)
        step = frame.number_of(request, "step")
        with RunReader(run.folder.database) as reader:
            return live_view.strips_of_step(run, reader, 2**53 if step is None else step)

    def live_group(self, request: Mapping[str, Any]) -> Answer:
        """One group, by its row id."""
        run = self._run(request)
        group_id = frame.number_of(request, "group", least=1)
        with RunReader(run.folder.database) as reader:
            detail = None if group_id is None else live_view.group_detail(run, reader, group_id)
        if detail is None:
            raise RunNotFoundError("no such group in this run")
        return detail

    def live_text(self, request: Mapping[str, Any]) -> Answer:
        """The whole text of a completion or prompt."""
        folder = self._required(request)
        row_id, kind = frame.number_of(request, "id", least=1), frame.text_of(request, "kind") or ""
        with RunReader(folder.database) as reader:
            text = None if row_id is None else queries.full_text(reader, kind, row_id)
        if text is None:
            raise RunNotFoundError("no such text in this run")
        return {"text": text}

    def live_log(self, request: Mapping[str, Any]) -> Answer:
        """The end of the worker's log."""
        return {"text": tail(self._required(request).log)}

    def live_runs(self, request: Mapping[str, Any]) -> Answer:
        """The newest runs, for the picker."""
        folders = [folder for folder, _ in zip(run_folders(self.settings.runs_dir), range(PICKER_RUNS), strict=False)]
        return {"runs": [self._listed(folder) for folder in folders]}

    def _listed(self, folder: RunFolder) -> Answer:
        """A run in the picker; one that cannot be read does not cost the others."""
        listed: Answer = {"id": folder.run_id, "name": run_name(folder.run_id)}
        try:
            return listed | {"state": state_of(folder).state}
        except Exception as error:
            return listed | {"state": UNREADABLE, "problem": told(f"the run {folder.run_id}", error)}

    def live_stop(self, request: Mapping[str, Any]) -> Answer:
        """Ask the run that is named to stop, never just the newest; returns at once."""
        return stop_run(chosen_run(self.settings, request), self.settings)

    def _folder(self, request: Mapping[str, Any]) -> RunFolder | None:
        """The run that is asked for, the newest when none is; None when there are no runs at all."""
        if request.get("run") is None:
            return next(run_folders(self.settings.runs_dir), None)
        return chosen_run(self.settings, request)

    def _required(self, request: Mapping[str, Any]) -> RunFolder:
        folder = self._folder(request)
        if folder is None:
            raise RunNotFoundError("there are no runs yet")
        return folder

    def _run(self, request: Mapping[str, Any]) -> LiveRun:
        folder = self._required(request)
        return self._live(folder, state_of(folder))

    def _live(self, folder: RunFolder, state: RunState) -> LiveRun:
        waits = state.state == "queued" and JobQueue(self.settings.queue_path).has(folder.path)
        return LiveRun(folder, config_of(folder.path), state, waits)


def stop_run(folder: RunFolder, settings: Settings) -> Answer:
    """Ask a run to stop; for a run that has ended, say so."""
    state = state_of(folder)
    if state.ended:
        raise StoreError(f"{folder.run_id} has already ended: {state.state}")
    supervisor.stop(folder, settings)
    return {"ok": True}


def _news(run: LiveRun, reader: RunReader, cursor: Answer, known: Mapping[str, Any]) -> Answer:
    shown = queries.steps(reader)
    news: Answer = {"now": time.time(), "strip": live_view.strip(run, reader, shown)}
    if not known:
        news["about"] = live_view.about(run)
    anew = cursor["attempt"] != known.get("attempt")  # rows past its checkpoint do not count from now on
    stepped = anew or cursor["metric"] != known.get("metric")
    if stepped:
        news["charts"] = live_charts.charts(run, reader, shown)
    if anew or cursor["group"] != known.get("group"):
        news["groups"] = live_view.map_of_groups(run, reader)
    if cursor["event"] != known.get("event"):
        news["events"] = live_view.events(queries.recent_events(reader, _whole(known.get("event"))))
        news["events_total"] = queries.count_events(reader)
    newest, drawn = queries.newest_memory_time(reader), known.get("memory_time")
    if stepped or not isinstance(drawn, int | float) or newest - drawn >= MEMORY_EVERY or run.state.ended:
        news["memory"], drawn = live_charts.memory_chart(run, reader), newest
        news["memory_facts"] = live_charts.memory_facts(run, reader)
    return {"cursor": cursor | {"memory_time": drawn}} | news


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0
