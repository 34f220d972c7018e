"""What the launch page may ask of a draft's data: its columns, its first prompts, a scan of all of it.

Text from files comes back cut to bearable sizes and is shown as text. No gradio here.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from grpo_studio import preview
from grpo_studio.config import RunConfig
from grpo_studio.data import is_made
from grpo_studio.data.look import look
from grpo_studio.data.made import made_fields, made_reward
from grpo_studio.data.mapping import NO_COLUMN
from grpo_studio.errors import ColumnError
from grpo_studio.looks import ScanCache
from grpo_studio.settings import Settings
from grpo_studio.ui.checks import Checks
from grpo_studio.ui.guard import Answer
from grpo_studio.ui.jobs import Job, Jobs
from grpo_studio.ui.launch_requests import (
    answered,
    capped,
    config_for_prompts,
    draft_of,
    key_of,
    page_of,
    valid_config,
)
from grpo_studio.ui.readable import require_inside

GOLD = "dataset.columns.answer"
SCANS_AT_ONCE = 1
PAGES_KEPT = 50
LONGEST_PART = 4_000
MOST_PARTS = 400
SCANNED = ("model", "dataset", "rewards", "algorithm", "memory", "rollout")
"""Sections that a scan depends on; what is wrong elsewhere does not keep it from beginning."""


class DataActions:
    """The server functions of the data card, the prompts and the scan. One object serves all browsers."""

    def __init__(self, settings: Settings, scans: ScanCache) -> None:
        self.settings = settings
        self._scans = scans
        self._looks = Checks()
        self._previews = Checks()
        self._jobs = Jobs(SCANS_AT_ONCE)
        self._newest: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    @answered
    def look_at_data(self, request: Mapping[str, Any]) -> Answer:
        """The columns of the draft's data set and how they are used (see `data.look`), or {"superseded": True}."""
        config = self._config(request)
        found = self._looks.newest(
            page_of(request), request.get("ticket"), lambda: capped(look(config.dataset), longest=300, most=250)
        )
        return found or {"superseded": True}

    @answered
    def preview_prompts(self, request: Mapping[str, Any]) -> Answer:
        """{"prompts": [{"parts", "tokens", "answer", "gold"}], "gold_asked"}: the first as the model will see them.

        `gold_asked`: which column holds the gold is still to be said.
        """
        config = self._config(request)
        found = self._previews.newest(page_of(request), request.get("ticket"), lambda: self._prompts(config))
        return found or {"superseded": True}

    def _prompts(self, config: RunConfig) -> Answer:
        try:
            shown, asked = preview.preview(config, self.settings), False
        except ColumnError as error:
            if error.field != GOLD:
                raise
            # Which column is the gold does not matter to what the model sees.
            columns = config.dataset.columns.model_copy(update={"answer": NO_COLUMN})
            dataset = config.dataset.model_copy(update={"columns": columns})
            shown, asked = preview.preview(config.model_copy(update={"dataset": dataset}), self.settings), True
        return {
            "gold_asked": asked,
            "prompts": [
                {
                    "parts": capped(item.parts, LONGEST_PART, MOST_PARTS),
                    "tokens": item.tokens,
                    "answer": capped(item.answer),
                    "gold": capped(item.gold, 200),
                }
                for item in shown
            ],
        }

    def _config(self, request: Mapping[str, Any]) -> RunConfig:
        config = config_for_prompts(draft_of(request))
        require_inside(config, self.settings)
        return config

    @answered
    def made_settings(self, request: Mapping[str, Any]) -> Answer:
        """{"fields", "reward"} of a data set that is made in place: its settings, and the reward that fits it."""
        source = str(request.get("source") or "")[:1000]
        if not is_made(source):
            return {"fields": [], "reward": None}
        params = request.get("params")
        reward = made_reward(source, params if isinstance(params, Mapping) else None)
        return {"fields": made_fields(source), "reward": reward}

    @answered
    def scan_begin(self, request: Mapping[str, Any]) -> Answer:
        """Begin a scan under a `key` of the page's, in the form of `Job.answer`; an older one of the page is ended."""
        key, page, draft = key_of(request), page_of(request), draft_of(request)
        config = valid_config({name: draft[name] for name in SCANNED if name in draft})
        require_inside(config, self.settings)
        self._end_older(page, key)
        return self._jobs.begin(key, "scan", lambda job: self._scan(job, config))

    @answered
    def scan_progress(self, request: Mapping[str, Any]) -> Answer:
        """How far a scan is."""
        return self._jobs.progress(key_of(request))

    @answered
    def scan_cancel(self, request: Mapping[str, Any]) -> Answer:
        """Ask a scan to end."""
        return self._jobs.cancel(key_of(request))

    def _scan(self, job: Job, config: RunConfig) -> Answer:
        with self._jobs.turn(job):
            report = self._scans.scan(config, self.settings, job.share)
        told: Answer = capped(report.as_dict(), longest=400, most=200)
        return told

    def _end_older(self, page: str, key: str) -> None:
        with self._lock:
            older = self._newest.pop(page, None)
            self._newest[page] = key
            while len(self._newest) > PAGES_KEPT:
                self._newest.popitem(last=False)
        if older is not None and older != key and page:
            self._jobs.cancel(older)
