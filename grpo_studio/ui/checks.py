"""Questions about a draft while a person types: only the newest of a page is answered."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PAGES_KEPT = 50
Answer = dict[str, Any]


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
