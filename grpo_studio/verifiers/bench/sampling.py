"""Real samples for the bench: made by a process of its own that loads the model, kept in the cache.

The process dies with this one, by signal 9 too: the kernel watches the thread that started it, which is the job's own
and lives as long as the process does. What it samples comes over its pipe; only whole results are kept.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Literal

from grpo_studio.catalog import locate
from grpo_studio.child_environment import search_path
from grpo_studio.devices import worker_environment
from grpo_studio.errors import StudioError
from grpo_studio.hub_use import reads_hub
from grpo_studio.settings import Settings
from grpo_studio.verifiers.bench.beside import require_free_gpu
from grpo_studio.verifiers.bench.request import SamplingRequest
from grpo_studio.verifiers.bench.sample_cache import group_of, read_groups, write_groups
from grpo_studio.verifiers.bench.samples import SampledGroup

LEAVES_WITHIN = 5.0
"""Seconds between the last word of a process and its end."""
State = Literal["running", "done", "failed", "cancelled"]


@dataclass(frozen=True)
class SamplingState:
    """`message` is what is being done and what slows it, or why it failed; `done` and `wanted` count completions."""

    state: State
    message: str
    done: int
    wanted: int


def cached_groups(request: SamplingRequest, settings: Settings) -> tuple[SampledGroup, ...] | None:
    """The groups of this request if they were sampled before."""
    return read_groups(request, settings.cache)


def start_sampling(request: SamplingRequest, settings: Settings) -> SamplingJob:
    """Begin to sample; what was sampled before is there at once.

    Raises:
        ModelError: the model is not to be found, or a run has the GPU.
    """
    locate(request.config.model.id, settings.cache)
    kept = cached_groups(request, settings)
    note = require_free_gpu(settings) if kept is None else ""
    return SamplingJob(request, settings, kept, note)


class SamplingJob:
    """One sampling process, followed by a thread of its own. All methods may be called from any thread."""

    def __init__(
        self,
        request: SamplingRequest,
        settings: Settings,
        kept: tuple[SampledGroup, ...] | None = None,
        note: str = "",
    ) -> None:
        self._request, self._settings = request, settings
        self._note = f" ({note})" if note else ""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._groups = kept or ()
        self._rows: list[dict[str, Any]] = []
        self._state = SamplingState("running", "starting", 0, request.wanted)
        self._ended = threading.Event()
        if kept is not None:
            count = sum(len(group.completions) for group in kept)
            self._end("done", "sampled before", count, count)
        else:
            threading.Thread(target=self._follow, name="sampling", daemon=True).start()

    def poll(self) -> SamplingState:
        """How far it is."""
        return self._state

    def wait(self, seconds: float | None = None) -> SamplingState:
        """Wait until it has ended, at most so long."""
        self._ended.wait(seconds)
        return self._state

    def groups(self) -> tuple[SampledGroup, ...]:
        """The groups, once it is done; before that, or when it failed, none."""
        return self._groups

    def cancel(self) -> None:
        """End it. Nothing is kept; one that has ended stays as it is."""
        with self._lock:
            if not self._ended.is_set():
                self._end("cancelled", "cancelled", self._state.done, self._state.wanted)
                if self._process is not None:
                    _kill(self._process)
        # The follower clears up: it sees the end of the pipe.

    # --- the follower's thread ---

    def _follow(self) -> None:
        try:
            with tempfile.TemporaryFile() as errors:
                self._run(errors)
        except Exception as error:  # whatever it is: a job that never ended would be waited for without end
            text = " ".join(str(error).split())
            self._fail(text if isinstance(error, StudioError) else f"{type(error).__name__}: {text[:300]}")

    def _run(self, errors: IO[bytes]) -> None:
        with self._lock:
            if self._ended.is_set():
                return
            process = self._process = _start(self._request, self._settings, errors)
        assert process.stdout is not None
        try:
            complete = any(self._take(line) for line in process.stdout)
        finally:
            code = _ended(process)
            process.stdout.close()
        if complete:
            self._keep()
        else:
            self._fail(_end_of(code, errors))

    def _take(self, line: bytes) -> bool:
        """One line of the process; True when it was the last one."""
        said = json.loads(line)
        kind = said["kind"]
        if kind == "failed":
            self._fail(str(said["message"]))
        elif kind == "group":
            self._rows.append(said["group"])
        elif kind == "progress":
            with self._lock:
                if not self._ended.is_set():
                    message, done, wanted = f"{said['message']}{self._note}", int(said["done"]), int(said["wanted"])
                    self._state = SamplingState("running", message, done, wanted)
        return bool(kind == "done")

    def _keep(self) -> None:
        groups = tuple(group_of(row) for row in self._rows)
        with self._lock:
            if self._ended.is_set():
                return
            write_groups(self._request, self._settings.cache, self._rows)
            count = sum(len(group.completions) for group in groups)
            self._groups = groups
            self._end("done", f"{count} completions sampled", count, count)

    def _fail(self, message: str) -> None:
        with self._lock:
            if not self._ended.is_set():
                self._end("failed", message, self._state.done, self._state.wanted)

    def _end(self, state: State, message: str, done: int, wanted: int) -> None:
        self._state = SamplingState(state, message, done, wanted)
        self._ended.set()


def _start(request: SamplingRequest, settings: Settings, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    environment = os.environ | worker_environment() | search_path()
    config = request.config
    if not reads_hub(config, settings):
        environment["HF_HUB_OFFLINE"] = "1"  # nothing of it is there: no library shall wait for it
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "grpo_studio.training.sample_groups", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=environment,
        process_group=0,  # so that a kill takes along what it started, such as pip
    )
    document = {
        "config": config.model_dump(mode="json"),
        "prompts": request.prompts,
        "per_prompt": request.per_prompt,
        "cache": str(settings.cache),
    }
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(json.dumps(document).encode() + b"\n")
    return process


def _ended(process: subprocess.Popen[bytes]) -> int:
    """The exit status of a process that has said its last word: it may leave by itself, but not take its time."""
    try:
        return process.wait(LEAVES_WITHIN)
    except subprocess.TimeoutExpired:
        _kill(process)
        return process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def _end_of(code: int, errors: IO[bytes]) -> str:
    """Why a process that said nothing has ended, in one line."""
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4096))
    lines = [line for line in errors.read().decode("utf-8", "replace").splitlines() if line.strip()]
    how = f"signal {-code}" if code < 0 else f"exit status {code}"
    hint = "; that is how the machine ends one that needs too much memory" if code == -signal.SIGKILL else ""
    last = f": {lines[-1].strip()[:300]}" if lines else ""
    return f"the sampling process ended early ({how}{hint}){last}"
