"""Traces kept on disk and in memory, by all that they depend on: what was traced, and by which versions of what."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from grpo_studio import __version__
from grpo_studio.memory.traced import Traced, TraceRequest
from grpo_studio.memory.tracer import TraceError
from grpo_studio.remembered import Remembered
from grpo_studio.store.folder import write_whole
from grpo_studio.versions import installed

FOLDER = "forecasts"
LARGEST = 4 << 20
"""Bytes of a kept trace; a larger file is none."""
FAILED_FOR = 60.0
"""Seconds for which a failure counts."""
_IN_MEMORY: Remembered[Traced] = Remembered(128)
_FAILED: Remembered[TraceError] = Remembered(32)


class TraceCache:
    """Traces below a cache folder. Safe to use from any thread and process: files appear whole."""

    def __init__(self, cache: Path) -> None:
        self._folder = cache / FOLDER

    def known(self, request: TraceRequest) -> Traced | None:
        """The kept trace; None when there is none, or its file is damaged or of other versions."""
        path = self._path(request)
        found = _IN_MEMORY.known(path)
        if found is not None:
            return found
        try:
            if path.stat().st_size > LARGEST:
                return None
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["made_by"] != made_by():
                return None
            found = Traced.from_dict(kept["traced"])
            _require_whole(found)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return _IN_MEMORY.get(path, lambda: found)

    def get(self, request: TraceRequest, trace: Callable[[TraceRequest], Traced]) -> Traced:
        """The kept trace, or the one that `trace` makes now; a disk that cannot be written to keeps none.

        Raises:
            TraceError: it cannot be traced; that is known for a minute, so that a form does not try at each change.
        """
        known = self.known(request)
        if known is not None:
            return known
        path = self._path(request)
        failed = _FAILED.known((path, _turn()))
        if failed is not None:
            raise TraceError(str(failed), failed.model_bytes)
        try:
            traced = trace(request)
        except TraceError as error:
            kept = TraceError(str(error), error.model_bytes)
            _FAILED.get((path, _turn()), lambda: kept)
            raise
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps({"made_by": made_by(), "traced": traced.as_dict()}))
        return _IN_MEMORY.get(path, lambda: traced)

    def _path(self, request: TraceRequest) -> Path:
        return self._folder / f"{_key(request)}.json"


@functools.lru_cache(maxsize=1)
def made_by() -> dict[str, str]:
    """The versions that a trace depends on."""
    libraries = ("torch", "transformers", "trl", "peft", "liger-kernel")
    return {"grpo_studio": __version__, **installed(libraries)}


def _require_whole(traced: Traced) -> None:
    """Raises ValueError or TypeError for what no trace holds: a file may have been cut, mixed up or written by hand."""
    counts = list(vars(traced.model).values())
    for batches in (*traced.loss.values(), *traced.forward.values()):
        sizes = [batch.micro_batch for batch in batches]
        if not sizes or sorted(set(sizes)) != sizes or not all(batch.first for batch in batches):
            raise ValueError("a pass without its batches in order")
        for moment in (moment for batch in batches for kind in (batch.first, batch.later) for moment in kind.values()):
            counts += moment.values()
        counts += sizes
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError("not a whole number of bytes")
    if traced.loss.keys() != traced.forward.keys():
        raise ValueError("half a backend")
    if not all(isinstance(text, str) for text in (*traced.notes, *traced.untraced.values())):
        raise ValueError("a note that is no text")


def _turn() -> int:
    return int(time.monotonic() / FAILED_FOR)


def _key(request: TraceRequest) -> str:
    text = json.dumps([vars(request), made_by()], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
