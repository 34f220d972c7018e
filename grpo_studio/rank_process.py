"""One of a run's several processes, seen from the launcher that starts it: how it is ended, and why it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_studio.store.folder import write_whole

LAST_WORD = "TORCHELASTIC_ERROR_FILE"
"""Set by torchrun's agent: the file in which a rank says why it ends."""
END_WITHIN = 10.0
"""Seconds that a rank has to end when another one failed: it may be stuck in a collective, deaf to SIGTERM."""
STOPPED_EARLY = "stopped on request before training began"


@dataclass(frozen=True)
class RankEnd:
    """Why a rank ended before its work was done.

    Args:
        time: when, by time.time(); of a killed rank when it was last seen alive.
        message: a clause that names the rank.
        stopped: it ended because it was asked to.
    """

    rank: int
    time: float
    message: str
    stopped: bool = False


class _Watched(subprocess.Popen[bytes]):
    """A process that remembers when it was last seen alive."""

    seen_alive = 0.0

    def poll(self) -> int | None:
        now = time.time()
        code = super().poll()
        if code is None:
            self.seen_alive = now
        return code


class RankProcess:
    """One rank, in the form in which torchrun's agent handles a process (`SubprocessHandler` of torch 2.13.0).

    It stays in the launcher's session, so that whoever clears up after the worker finds it, in a group of its own.
    """

    def __init__(
        self,
        entrypoint: str,
        args: Sequence[str],
        env: dict[str, str],
        stdout: str,
        stderr: str,
        local_rank_id: int,
        numa_options: Any = None,
    ) -> None:
        self.rank = int(env["RANK"])
        self._last_word = Path(env[LAST_WORD])
        self._ended_by_us = False
        started = time.time()
        self.proc = _Watched([entrypoint, *args], env={**os.environ, **env}, stdin=subprocess.DEVNULL, process_group=0)
        self.proc.seen_alive = started

    def close(self, death_sig: signal.Signals | None = None) -> None:
        """End it: by the signal (SIGTERM when None), and by SIGKILL when it still lives after END_WITHIN seconds."""
        self._ended_by_us = True
        self._signal_group(death_sig or signal.SIGTERM)
        timer = threading.Timer(END_WITHIN, self._signal_group, (signal.SIGKILL,))
        timer.daemon = True
        timer.start()

    def end(self, stop_requested: bool) -> RankEnd | None:
        """Why it ended; None when it finished, lives, or ended for no reason of its own (`close`)."""
        code, name = self.proc.poll(), f"rank {self.rank}"
        with suppress(FileNotFoundError, ValueError, KeyError):
            word = json.loads(self._last_word.read_text(encoding="utf-8"))
            return RankEnd(self.rank, word["timestamp"], f"{name}: {word['message']}", bool(word["stopped"]))
        if not code or self._ended_by_us:
            return None
        if code == -signal.SIGTERM and stop_requested:  # it had not got as far as to handle the signal
            return RankEnd(self.rank, self.proc.seen_alive, f"{name}: {STOPPED_EARLY}", stopped=True)
        if code < 0:
            message = f"{name} was killed by {_signal_words(-code)}"
        else:
            message = f"{name} ended without a word (exit code {code}), see the log"
        return RankEnd(self.rank, self.proc.seen_alive, message)

    def _signal_group(self, number: signal.Signals) -> None:
        if self.proc.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.proc.pid, number)


def first_cause(ends: Iterable[RankEnd]) -> RankEnd | None:
    """The end that came first: one rank's death makes the others fail a moment later."""
    return min(ends, key=lambda end: (end.time, end.rank), default=None)


def leave_word(message: str, stopped: bool = False) -> None:
    """In a rank: tell the launcher why this rank ends, before its end can make others fail."""
    word = {"message": message, "timestamp": time.time(), "stopped": stopped}
    write_whole(Path(os.environ[LAST_WORD]), json.dumps(word))


def _signal_words(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "unknown"
    return f"signal {number} ({name}{', likely out of memory' if number == signal.SIGKILL else ''})"
