"""Checks of a draft while a person types: data sets are read once, and only the newest question is answered."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpo_studio import data
from grpo_studio.config import DatasetSettings
from grpo_studio.data import DataSplits

DATA_KEPT = 3
PAGES_KEPT = 50
Answer = dict[str, Any]
Key = tuple[str, int, int]


class DataCache:
    """`data.load` that remembers the last data sets, until the settings or the file change. Errors are not kept."""

    def __init__(self, load: Callable[[DatasetSettings], DataSplits] = data.load) -> None:
        self._load = load
        self._kept: OrderedDict[Key, DataSplits] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, settings: DatasetSettings) -> DataSplits:
        """As `data.load`, with its errors."""
        key = _key_of(settings)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        splits = self._load(settings)
        with self._lock:
            self._kept[key] = splits
            while len(self._kept) > DATA_KEPT:
                self._kept.popitem(last=False)
        return splits


def _key_of(settings: DatasetSettings) -> Key:
    try:
        status = Path(settings.source).expanduser().stat()
    except (OSError, ValueError, RuntimeError):
        return (settings.model_dump_json(), 0, 0)
    return (settings.model_dump_json(), status.st_mtime_ns, status.st_size)


@dataclass
class _Page:
    newest: int = 0
    turn: threading.Lock = field(default_factory=threading.Lock)


class Checks:
    """One check at a time for each open page; what was asked before the newest question is dropped unanswered."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, _Page] = OrderedDict()
        self._lock = threading.Lock()

    def newest(self, page: str, ticket: Any, check: Callable[[], Answer]) -> Answer | None:
        """The answer, or None when the page has asked again meanwhile. Without page or ticket: always the answer."""
        if not page or isinstance(ticket, bool) or not isinstance(ticket, int):
            return check()
        with self._lock:
            known = self._pages.setdefault(page, _Page())
            self._pages.move_to_end(page)
            known.newest = max(known.newest, ticket)
            while len(self._pages) > PAGES_KEPT:
                self._pages.popitem(last=False)
        with known.turn:
            return check() if ticket == known.newest else None
