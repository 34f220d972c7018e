"""The Memory page: a forecast of any preset or run, probes of its loss backends on one batch, finished pairs.

What is looked at stands in the page's address, so any view can be sent on. Drawn by assets/memory*.js.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import gradio as gr

from grpo_studio.settings import Settings
from grpo_studio.ui import frame, memory_forecast, memory_more, memory_probes
from grpo_studio.ui.checks import Checks
from grpo_studio.ui.command_jobs import command_jobs_of
from grpo_studio.ui.launch_requests import answered, key_of, page_of
from grpo_studio.ui.memory_source import about_source, described_fields, listed_presets, listed_runs, source_of
from grpo_studio.ui.readable import confined

PAIRS_FOR = 15.0
"""Seconds for which the list of pairs is good: making it looks into every run's folder."""

Answer = dict[str, Any]


def add_page(demo: gr.Blocks, settings: Settings) -> None:
    """Add the route /memory."""
    actions = MemoryActions(settings)
    functions: list[frame.ServerFunction] = [
        actions.memory_about, actions.memory_look, actions.memory_forecast, actions.memory_lines, actions.memory_tick,
        actions.run_command, actions.run_command_progress, actions.run_command_cancel,
    ]  # fmt: skip
    with demo.route("Memory", "/memory"):
        frame.add_view("memory", "memory.js", functions, settings)


class MemoryActions:
    """The page's server functions. Requests come from anybody; one object serves all browsers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._commands = command_jobs_of(settings)
        self._looks, self._lines = Checks(), Checks()

    @answered
    def memory_about(self, request: Mapping[str, Any]) -> Answer:
        """What there is to choose from, and the cards that never change."""
        return {
            "presets": listed_presets(self.settings),
            "runs": listed_runs(self.settings),
            "card": memory_forecast.listed_cards(),
            "fields": described_fields(),
            "sweep_to": memory_probes.usual_end(),
            "refused": memory_probes.REFUSED if confined(self.settings) else None,
            **memory_more.cards(),
        }

    @answered
    def memory_look(self, request: Mapping[str, Any]) -> Answer:
        """The settings that a request names, and what is wrong with them; nothing is computed yet."""
        return about_source(source_of(request, self.settings))

    @answered
    def memory_forecast(self, request: Mapping[str, Any]) -> Answer:
        """The forecast, or {"superseded": True} when the page has asked again meanwhile."""
        return self._newest(
            self._looks,
            request,
            lambda: memory_forecast.forecast_of(
                source_of(request, self.settings), memory_forecast.chosen_card(request), self.settings
            ),
        )

    @answered
    def memory_lines(self, request: Mapping[str, Any]) -> Answer:
        """The forecast's lines over completions in one pass, or {"superseded": True}."""
        return self._newest(
            self._lines,
            request,
            lambda: memory_forecast.forecast_lines(
                source_of(request, self.settings), memory_forecast.chosen_card(request), self.settings
            ),
        )

    @answered
    def memory_tick(self, request: Mapping[str, Any]) -> Answer:
        """Probes, the chosen one of them, pairs, and what the run measured; `version` alone when nothing is new."""
        told: Answer = {
            "probes": memory_probes.listed_probes(self.settings),
            "probe": memory_probes.probe_view(self.settings, request),
            "pairs": _pairs(self.settings, int(time.monotonic() / PAIRS_FOR)),
            "measured": None,
        }
        if request.get("run") is not None:
            folder = source_of({"run": request["run"]}, self.settings).folder
            told["measured"] = None if folder is None else memory_more.measured_of(folder)
        version = hashlib.blake2b(repr(told).encode("utf-8", "replace"), digest_size=8).hexdigest()
        return {"version": version} if request.get("version") == version else told | {"version": version}

    @answered
    def run_command(self, request: Mapping[str, Any]) -> Answer:
        """Begin a probe: `kind` probe or sweep, of what the request names."""
        source = source_of(request, self.settings)
        return self._commands.begin(key_of(request), memory_probes.command_of(source, request, self.settings))

    @answered
    def run_command_progress(self, request: Mapping[str, Any]) -> Answer:
        """How far it is."""
        return self._commands.progress(key_of(request))

    @answered
    def run_command_cancel(self, request: Mapping[str, Any]) -> Answer:
        """End it."""
        return self._commands.cancel(key_of(request))

    def _newest(self, checks: Checks, request: Mapping[str, Any], work: Callable[[], Answer]) -> Answer:
        return checks.newest(page_of(request), request.get("ticket"), work) or {"superseded": True}


@lru_cache(maxsize=1)
def _pairs(settings: Settings, moment: int) -> list[Answer]:
    return memory_more.listed_pairs(settings)
