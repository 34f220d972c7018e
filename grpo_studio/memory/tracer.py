"""Traces of models, by a child process that holds torch and is kept warm."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from grpo_studio.child_environment import search_path
from grpo_studio.errors import ModelError
from grpo_studio.memory.traced import ModelBytes, Traced, TraceRequest
from grpo_studio.shown import shown

TRACE_LIMIT = 60.0
"""Seconds that one trace may take, loading of the libraries included."""
END_WITHIN = 5.0
LAST_WORDS = 2000
OWN_ENVIRONMENT = {
    "TORCHDYNAMO_DISABLE": "1",
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONUNBUFFERED": "1",
}
"""Nothing is computed and nothing is fetched by a trace."""


class TraceError(ModelError):
    """A model's modules cannot be traced; `model_bytes` are its own numbers when those at least could be counted."""

    def __init__(self, message: str, model_bytes: ModelBytes | None = None) -> None:
        super().__init__(message)
        self.model_bytes = model_bytes


class Tracer:
    """A warm child that traces one model at a time; it ends with this process or by `close`. Thread-safe.

    Args:
        limit: seconds after which a trace is given up and the child ended.
    """

    def __init__(self, limit: float = TRACE_LIMIT) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._words: Any = None
        self._unread = b""

    def __enter__(self) -> Tracer:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The child's, while there is one."""
        child = self._child
        return None if child is None or child.poll() is not None else child.pid

    def warm(self) -> None:
        """Start the child, so that it loads its libraries meanwhile; returns at once."""
        with self._lock:
            self._start()

    def trace(self, request: TraceRequest) -> Traced:
        """Blocks for as long as a trace takes, `limit` at most.

        Raises:
            TraceError: the model's modules cannot be traced.
        """
        with self._lock:
            self._start()
            answer = self._ask(request)
        if "traced" in answer:
            return Traced.from_dict(answer["traced"])
        counted = answer.get("model")
        raise TraceError(str(answer["error"]), None if counted is None else ModelBytes.from_dict(counted))

    def close(self) -> None:
        """End the child; a trace that another thread waits for ends in a TraceError."""
        child = self._child
        if child is not None:
            child.kill()
        with self._lock:
            self._forget()

    def _start(self) -> None:
        if self._child is not None and self._child.poll() is None:
            return
        self._forget()
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the child)
        self._unread = b""
        self._child = subprocess.Popen(
            [sys.executable, "-m", "grpo_studio.training.trace_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            env=os.environ | search_path() | OWN_ENVIRONMENT,
            start_new_session=True,
        )

    def _ask(self, request: TraceRequest) -> Mapping[str, Any]:
        child = self._child
        assert child is not None
        assert child.stdin is not None
        try:
            child.stdin.write(json.dumps(request.as_dict()).encode() + b"\n")
            child.stdin.flush()
            line = self._line(child)
        except OSError:  # it is gone
            line = b""
        if line:
            answer: Mapping[str, Any] = json.loads(line)
            return answer
        if child.poll() is None:
            self._forget()
            raise TraceError(
                f"tracing the model's modules took over {self._limit:g} seconds and was given up; go by the closed form"
            )
        raise TraceError(self._last_words(child.wait()))

    def _line(self, child: subprocess.Popen[bytes]) -> bytes:
        """The next line of the child; empty when it ends, or when the time is over."""
        assert child.stdout is not None
        end = time.monotonic() + self._limit
        while b"\n" not in self._unread:
            ready, _, _ = select.select([child.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return b""
            piece = os.read(child.stdout.fileno(), 1 << 16)
            if not piece:
                child.wait(END_WITHIN)
                return b""
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _forget(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait(END_WITHIN)
        for pipe in (child.stdin, child.stdout, self._words):
            with suppress(OSError):  # what was still to be sent to it
                if pipe is not None:
                    pipe.close()

    def _last_words(self, code: int) -> str:
        """Why the child died, as far as its last line and its exit code tell."""
        size = self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, size - LAST_WORDS))
        said = self._words.read().decode("utf-8", "replace").strip().splitlines()
        why = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        last = f": {shown(said[-1], 300)}" if said else ""
        return f"the process that traces models ended, {why}{last}; try again, or go by the closed form"
