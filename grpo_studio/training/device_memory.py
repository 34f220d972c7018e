"""What a device has in use: a GPU from CUDA's allocator, a CPU from the bytes of its tensors where they are counted."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import psutil
import torch

from grpo_studio.training.tensor_bytes import TensorBytes


class Use(NamedTuple):
    """Bytes; None where the device keeps no count."""

    allocated: int | None
    reserved: int | None


class DeviceMemory(Protocol):
    """A device with a greatest value that can be begun anew."""

    name: str

    def now(self) -> Use:
        """In use at this moment."""

    def peak(self) -> Use:
        """The greatest since the last reset."""

    def reset(self) -> None:
        """Begin the greatest anew."""


class CardMemory:
    """One GPU, as this process's allocator counts it."""

    def __init__(self, index: int, name: str) -> None:
        self.index = index
        self.name = name

    def now(self) -> Use:
        return Use(torch.cuda.memory_allocated(self.index), torch.cuda.memory_reserved(self.index))

    def peak(self) -> Use:
        return Use(torch.cuda.max_memory_allocated(self.index), torch.cuda.max_memory_reserved(self.index))

    def reset(self) -> None:
        torch.cuda.reset_peak_memory_stats(self.index)


class CpuMemory:
    """The CPU: nothing but what `tensors` counts; without it only the process's resident size is known."""

    def __init__(self, name: str, tensors: TensorBytes | None = None) -> None:
        self.name = name
        self._tensors = tensors

    def now(self) -> Use:
        return Use(None if self._tensors is None else self._tensors.current, None)

    def peak(self) -> Use:
        return Use(None if self._tensors is None else self._tensors.peak, None)

    def reset(self) -> None:
        if self._tensors is not None:
            self._tensors.reset_peak()


def cards_in_use(own: int) -> list[int]:
    """This process's own GPU, and those others on which its allocator holds something."""
    others = (index for index in range(torch.cuda.device_count()) if index != own)
    return [own, *(index for index in others if torch.cuda.memory_reserved(index) > 0)]


def size_of(device: torch.device) -> int:
    """Bytes that there are in all: of the card, or of the machine on a CPU."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return int(psutil.virtual_memory().total)


def device_name(device: torch.device, rank: int, world: int, machine: int) -> str:
    """What a sample calls its device: "cuda:1", "cpu", and with several processes "cpu rank 1", "cuda:1 machine 2"."""
    if device.type != "cuda":
        return f"{device.type} rank {rank}" if world > 1 else device.type
    card = f"cuda:{device.index or 0}"
    return card if machine == 0 else f"{card} machine {machine + 1}"
