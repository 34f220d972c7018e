"""Several processes of a run on this machine: the worker starts them, passes a stop on and tells how they ended.

The worker is then a launcher: it trains nothing and stays in its session, and so do its ranks, each a
`python -m grpo_studio.worker` with RANK and its like in its environment. While they live only the first of them writes
to run.db; when all are dead the launcher adds the terminal event that is missing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.devices import current_device
from grpo_studio.engine_settings import ScaleSettings
from grpo_studio.rank_process import END_WITHIN, STOPPED_EARLY, RankEnd, RankProcess, first_cause
from grpo_studio.run_state import TERMINAL
from grpo_studio.store.folder import RunFolder, write_whole
from grpo_studio.store.reader import RunReader
from grpo_studio.store.writer import RunWriter

LAUNCHER = "GRPO_STUDIO_LAUNCHER"
"""Set in a rank's environment: the launcher's pid."""
POLL = 0.2
GIVE_UP = 1.0
"""Seconds after a stop request after which a launcher without ranks leaves, whatever it still waits for."""


def rank_environment(config: RunConfig) -> dict[str, str]:
    """Variables that the ranks of this machine want beside torchrun's."""
    environment = {LAUNCHER: str(os.getpid())}
    if current_device().kind == "cpu":
        environment["ACCELERATE_USE_CPU"] = "true"
    if "OMP_NUM_THREADS" not in os.environ:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        environment["OMP_NUM_THREADS"] = str(max(1, cores // config.scale.processes))
    return environment


def launch(folder: RunFolder, attempt: int, command: Sequence[str] | None = None) -> int:
    """Run this machine's ranks of an attempt to their end, and see to its terminal event.

    SIGTERM is a request to stop, passed on to every rank; the ranks agree on the step.

    Args:
        command: of a rank; the worker itself when None.

    Returns:
        The worker's exit code.
    """
    launcher = _Launcher(folder, attempt)
    try:
        launcher.run(command or [sys.executable, "-m", "grpo_studio.worker", str(folder.path)])
    except BaseException as error:  # the boundary: whatever ends the launcher ends the run, and is told
        traceback.print_exc()
        launcher.trouble = f"what watches the processes ended: {type(error).__name__}: {' '.join(str(error).split())}"
    launcher.end_all()
    return launcher.tell()


class _Launcher:
    def __init__(self, folder: RunFolder, attempt: int) -> None:
        self.trouble = ""
        self._folder = folder
        self._attempt = attempt
        self._ranks: list[RankProcess] = []
        self._ends: list[RankEnd] = []
        self._stop_asked: float | None = None

    def run(self, command: Sequence[str]) -> None:
        """Block until the ranks have ended, or a stop came before they began."""
        config = self._folder.config()
        signal.signal(signal.SIGTERM, lambda number, frame: self._stop())
        if self._folder.stop_request.exists():
            self._stop()
            return
        self._say("preparing", _beginning(config.scale))
        os.environ.update(rank_environment(config))
        with tempfile.TemporaryDirectory(prefix=".ranks-", dir=self._folder.path, ignore_cleanup_errors=True) as words:
            agent = threading.Thread(target=self._run_agent, args=(config.scale, command, words), daemon=True)
            agent.start()
            while agent.is_alive() and not self._waits_in_vain():
                agent.join(POLL)
            self.end_all()
            self._ends = [end for rank in self._ranks if (end := rank.end(self._stop_asked is not None))]

    def end_all(self) -> None:
        """Make sure that no rank is left."""
        alive = [rank for rank in self._ranks if rank.proc.poll() is None]
        for rank in alive:
            rank.close()
        for rank in alive:
            with suppress(subprocess.TimeoutExpired):  # not even SIGKILL ends what is stuck in a driver
                rank.proc.wait(2 * END_WITHIN)

    def tell(self) -> int:
        """Write the terminal event, unless a rank did; returns the exit code that goes with it."""
        with RunReader(self._folder.database) as reader:
            told = [event.kind for event in reader.events() if event.attempt == self._attempt]
            step = reader.last_step()
        terminal = next((kind for kind in reversed(told) if kind in TERMINAL), None) or self._conclude(step)
        return 1 if terminal == "run_failed" else 0

    def _conclude(self, step: int) -> str:
        cause = first_cause(self._ends)
        if cause.stopped if cause else self._stop_asked is not None:
            self._say("run_stopped", f"stopped on request after step {step}" if step else STOPPED_EARLY)
            return "run_stopped"
        message = self.trouble or "the processes ended without a word; see the log"
        if cause is not None:
            message = told_with(cause.message, f"last step {step}" if step else "before the first step")
        print(f"error: {message}", file=sys.stderr)
        self._say("run_failed", message, level="error")
        return "run_failed"

    def _stop(self) -> None:
        """Pass a stop on. The note in the folder tells the ranks that this SIGTERM does not just tear them down."""
        if self._stop_asked is None:
            self._stop_asked = time.monotonic()
        if not self._folder.stop_request.exists():
            write_whole(self._folder.stop_request, str(time.time()))
        for rank in list(self._ranks):
            rank.proc.send_signal(signal.SIGTERM)

    def _run_agent(self, scale: ScaleSettings, command: Sequence[str], words: str) -> None:
        from grpo_studio.training.torchrun import run_agent

        try:
            run_agent(scale, command, words, self._start)
        except Exception as error:  # the boundary of a thread
            what = " ".join(str(error).split())[:400] or type(error).__name__
            fix = "; check scale.main_process_ip and scale.main_process_port" if scale.machines > 1 else ""
            self.trouble = f"the processes could not be started: {what}{fix}"

    def _start(self, **arguments: Any) -> RankProcess:
        if self._stop_asked is not None:
            raise InterruptedError(STOPPED_EARLY)
        rank = RankProcess(**arguments)
        self._ranks.append(rank)
        if self._stop_asked is not None:  # asked just now: it was not yet among those that were signalled
            rank.proc.send_signal(signal.SIGTERM)
        return rank

    def _waits_in_vain(self) -> bool:
        """A stop was asked for before there were ranks: it may be waiting for other machines, which no signal ends."""
        return self._stop_asked is not None and not self._ranks and time.monotonic() - self._stop_asked > GIVE_UP

    def _say(self, kind: str, message: str, level: str = "info") -> None:
        writer = RunWriter(self._folder.database, self._attempt)
        writer.event(kind, message, level=level)
        writer.close()


def told_with(message: str, where: str) -> str:
    """Why a rank ended, with what its end meant for the run; a fix that the message names stays last."""
    what, between, fix = message.rpartition("; ")
    return f"{what or fix}; {where}; the other processes were ended{f'; {fix}' if between else ''}"


def _beginning(scale: ScaleSettings) -> str:
    processes = f"starting {scale.processes} process{'es' * (scale.processes > 1)} ({scale.strategy})"
    if scale.machines == 1:
        return processes
    place = f"{scale.main_process_ip}:{scale.main_process_port}"
    return f"{processes} as machine {scale.machine_rank} of {scale.machines}, which meet at {place}"
