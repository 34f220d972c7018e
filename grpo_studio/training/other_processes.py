"""What other processes hold on this process's cards: asked of NVML, or of nvidia-smi where NVML cannot be imported.

Asked seldom and from the watch's thread, so that no step ever waits for a driver.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

NVML_EVERY, PROGRAM_EVERY = 2.0, 10.0
"""Seconds between two looks: a call of the library takes a millisecond, the program a good part of a second."""
ANSWERS_WITHIN = 5.0
"""Seconds after which nvidia-smi is given up; a driver that hangs lets it wait for ever."""
FAILURES = 3
"""Looks in a row without an answer, after which nobody asks any more."""


@dataclass(frozen=True)
class CardUse:
    """Bytes in use on a card in all, and by process id where the driver tells them (None: it does not)."""

    used: int
    by_pid: Mapping[int, int | None] = field(default_factory=dict)


Ask = Callable[[Sequence[str]], Mapping[str, CardUse]]
"""From cards by uuid to what is in use on each; raises any of TROUBLE when there is no answer."""
TROUBLE = (OSError, subprocess.SubprocessError, ValueError)


def share_of_others(use: CardUse, pid: int, reserved: int) -> int:
    """Bytes on the card that are not this process's.

    Where the driver does not list this process (in a container its ids are others), they are what is in use beyond
    `reserved` of this process's allocator: its own CUDA context, some hundred MB, is then among them.
    """
    others = [held for other, held in use.by_pid.items() if other != pid]
    known = [held for held in others if held is not None]
    if pid in use.by_pid and len(known) == len(others):
        return sum(known)
    return max(0, use.used - reserved)


class OtherProcesses:
    """The greatest share of others since it was last taken. `look` is the thread's, `take` the main thread's."""

    def __init__(self, source: str | None, ask: Ask | None, every: float) -> None:
        self.source = source
        """Who is asked: "nvml", "nvidia-smi", or None."""
        self._ask = ask
        self._every = every
        self._asked_at = float("-inf")
        self._failures = 0
        self._greatest: int | None = None

    def look(self, now: float, reserved: Mapping[str, int]) -> None:
        """Ask, if it is time to; `reserved` are the bytes of this process's allocator by the card's uuid."""
        if self._ask is None or now - self._asked_at < self._every:
            return
        self._asked_at = now
        try:
            found = self._ask(list(reserved))
        except TROUBLE:
            self._failures += 1
            if self._failures >= FAILURES:
                self._ask = None
            return
        self._failures = 0
        for uuid, use in found.items():
            share = share_of_others(use, os.getpid(), reserved.get(uuid, 0))
            self._greatest = share if self._greatest is None else max(share, self._greatest)

    def take(self) -> int | None:
        """Bytes; None when nobody looked since the last call. With several cards those of the fullest by others."""
        greatest, self._greatest = self._greatest, None
        return greatest


def other_processes() -> OtherProcesses:
    """Whoever can be asked on this machine."""
    try:
        library = importlib.import_module("pynvml")
        library.nvmlInit()
    except Exception:  # not installed, or no driver that it can talk to: it has an error class of its own
        program = shutil.which("nvidia-smi")
        if program is None:
            return OtherProcesses(None, None, PROGRAM_EVERY)
        return OtherProcesses("nvidia-smi", lambda uuids: ask_program(program, uuids), PROGRAM_EVERY)
    return OtherProcesses("nvml", lambda uuids: ask_library(library, uuids), NVML_EVERY)


def ask_library(nvml: Any, uuids: Sequence[str]) -> dict[str, CardUse]:
    """Ask NVML (the module pynvml)."""
    found = {}
    try:
        for uuid in uuids:
            handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
            running = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
            by_pid = {int(process.pid): _whole(process.usedGpuMemory) for process in running}
            found[uuid] = CardUse(int(nvml.nvmlDeviceGetMemoryInfo(handle).used), by_pid)
    except nvml.NVMLError as error:
        raise OSError(str(error)) from error
    return found


def ask_program(program: str, uuids: Sequence[str]) -> dict[str, CardUse]:
    """Ask nvidia-smi, which tells the cards and their processes in two answers."""
    by_pid: dict[str, dict[int, int | None]] = {}
    for uuid, pid, used in _table(program, "--query-compute-apps=gpu_uuid,pid,used_memory", 3):
        if pid.isdecimal():
            by_pid.setdefault(uuid, {})[int(pid)] = _mebibytes(used)
    cards = {uuid: _mebibytes(used) for uuid, used in _table(program, "--query-gpu=uuid,memory.used", 2)}
    return {
        uuid: CardUse(used, by_pid.get(uuid, {})) for uuid, used in cards.items() if uuid in uuids and used is not None
    }


def card_uuid(index: int) -> str:
    """The card's name with the driver, which counts the cards in another order than CUDA_VISIBLE_DEVICES does."""
    uuid = str(torch.cuda.get_device_properties(index).uuid)
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"


def _table(program: str, query: str, columns: int) -> list[list[str]]:
    command = [program, query, "--format=csv,noheader,nounits"]
    answer = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ANSWERS_WITHIN, check=True
    )
    rows = [[part.strip() for part in line.split(",")] for line in answer.stdout.splitlines()]
    return [row for row in rows if len(row) == columns]


def _mebibytes(text: str) -> int | None:
    return int(text) << 20 if text.isdecimal() else None


def _whole(value: Any) -> int | None:
    """NVML gives None, or the greatest number there is, for a process whose memory it may not tell."""
    return None if value is None or int(value) >= 1 << 63 else int(value)
