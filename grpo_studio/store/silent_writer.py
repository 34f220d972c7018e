"""A writer that records nothing: what a process that is not the recording one is given in a writer's place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from grpo_studio.store.writer import RunWriter


class SilentWriter(RunWriter):
    """Takes all that a RunWriter takes and opens no file, so that who is given one need not ask which it is."""

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt

    def close(self) -> None:
        return None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        yield

    def _insert(self, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        return None

    def _insert_one(self, table: str, **values: Any) -> int:
        return 0
