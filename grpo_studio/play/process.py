"""A chat's child process seen from the app: start it, ask it, take what it said, free its memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from grpo_studio.child_environment import of_program
from grpo_studio.devices import worker_environment
from grpo_studio.errors import ModelError, UsageError
from grpo_studio.play.talk import Message, Sampling
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder

TURNS_KEPT = 50
LAST_WORDS = 2000
PROGRESS = re.compile(r"[0-9]%\|")
"""A progress bar of a library: no reason why a process died."""
END_WITHIN = 5.0

State = Literal["loading", "ready", "failed", "ended"]


@dataclass
class SaidBySide:
    """One side's reply as far as it has come."""

    text: str = ""
    done: bool = False
    tokens: int | None = None
    truncated: bool = False
    error: str = ""


@dataclass
class _Turn:
    sides: list[SaidBySide] = field(default_factory=list)


class PlayProcess:
    """Two sides (or one) of a run in a child of their own. Safe to use from several threads."""

    def __init__(self, folder: RunFolder, settings: Settings, sides: Sequence[str]) -> None:
        """Start loading; returns at once."""
        self.run_id, self.sides = folder.run_id, list(sides)
        self.asked = time.monotonic()
        self.state: State = "loading"
        self.message = ""
        self._turns: OrderedDict[str, _Turn] = OrderedDict()
        self._lock = threading.Lock()
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._child = subprocess.Popen(
            [sys.executable, "-m", "grpo_studio.play.chat_child", str(folder.path), *sides],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            env=os.environ | worker_environment(folder.config()) | of_program(settings) | {"PYTHONUNBUFFERED": "1"},
            cwd=folder.path,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._child.pid

    def say(self, turn: str, chats: Sequence[Sequence[Message]], sampling: Sampling) -> None:
        """Ask each side for its reply to its own chat; side after side.

        Raises:
            UsageError: the models are not loaded, or the turn before is not over.
        """
        with self._lock:
            if self.state != "ready":
                raise UsageError(
                    f"the models are not ready: {self.message or self.state}; wait, or open the chat again"
                )
            if any(not said.done for known in self._turns.values() for said in known.sides):
                raise UsageError("a reply is still being written; wait for it or stop it")
            self._turns[turn] = _Turn([SaidBySide() for _ in self.sides])
            while len(self._turns) > TURNS_KEPT:
                self._turns.popitem(last=False)
        for side, messages in enumerate(chats):
            self._send({"turn": turn, "side": side, "messages": list(messages), "sampling": sampling.as_dict()})

    def replies(self, turn: str) -> list[SaidBySide]:
        """What the sides have said in a turn so far; nothing for a turn that is not known."""
        known = self._turns.get(turn)
        return [] if known is None else known.sides

    def stop_turn(self) -> None:
        """Let the present reply end where it is."""
        self._send({"stop": True})

    def close(self) -> None:
        """End the child and with it what it holds; blocks until it is gone."""
        with self._lock:
            if self.state in ("loading", "ready"):
                self.state, self.message = "ended", ""
        self._child.kill()
        self._child.wait(END_WITHIN)

    def _send(self, request: Mapping[str, Any]) -> None:
        pipe = self._child.stdin
        try:
            if pipe is not None:
                pipe.write(json.dumps(request, ensure_ascii=True).encode() + b"\n")
                pipe.flush()
        except OSError as error:
            raise ModelError(
                f"the chat's process is gone: {self.message or 'it ended'}; open the chat again"
            ) from error

    def _listen(self) -> None:
        for line in self._child.stdout or ():
            self._take(json.loads(line))
        self._child.wait()
        with self._lock:
            if self.state in ("loading", "ready"):
                self.state, self.message = "failed", self._last_words()
            for known in self._turns.values():
                for said in known.sides:
                    if not said.done:
                        said.done, said.error = True, self.message or "the chat was closed"
        for pipe in (self._child.stdin, self._child.stdout, self._words):
            with suppress(OSError):  # what was still to be sent to it
                if pipe is not None:
                    pipe.close()

    def _take(self, told: Mapping[str, Any]) -> None:
        with self._lock:
            if "loading" in told:
                self.message = told["loading"]
            elif "ready" in told and self.state == "loading":
                self.state, self.message = "ready", ""
            elif "fatal" in told and self.state == "loading":
                self.state, self.message = "failed", told["fatal"]
            elif (known := self._turns.get(told.get("turn", ""))) is not None:
                said = known.sides[told["side"]]
                said.text += told.get("text", "")
                said.tokens = told.get("tokens", said.tokens)
                said.truncated = told.get("truncated", False)
                said.error = told.get("error", "")
                said.done = "done" in told or "error" in told

    def _last_words(self) -> str:
        """Why the child died, as far as its last lines and its exit code tell."""
        size = self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, size - LAST_WORDS))
        said = self._words.read().decode("utf-8", "replace").strip().splitlines()
        lines = [line for line in said if not PROGRESS.search(line)]
        code = self._child.returncode
        why = f"killed by signal {-code}, likely for lack of memory" if code < 0 else f"exit code {code}"
        last = f": {lines[-1][:300]}" if lines else ""
        return f"the chat's process ended: {why}{last}; close other programs, then open a new chat"
