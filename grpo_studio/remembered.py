"""The newest answers to questions that are asked again and again, such as at every change of a form."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Remembered(Generic[Answer]):
    """Keeps the answers asked for last. Safe to use from any thread; an error is not kept."""

    def __init__(self, count: int = 64) -> None:
        self._count = count
        self._kept: OrderedDict[Hashable, Answer] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, key: Hashable) -> Answer | None:
        """The kept answer, or None."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def get(self, key: Hashable, find: Callable[[], Answer]) -> Answer:
        """The kept answer, or the one that is found now."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        answer = find()
        with self._lock:
            self._kept[key] = answer
            while len(self._kept) > self._count:
                self._kept.popitem(last=False)
        return answer
