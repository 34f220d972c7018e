"""What of a device's memory this process has, and what is left to it: asked when memory ran out."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

_CGROUP = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class InUse:
    """Bytes, of one device.

    Args:
        device: its name.
        total: all that it has, or that this process may have.
        used: by this process's tensors on a GPU; by the process on a CPU.
        reserved: by torch's allocator on a GPU, free blocks included; None on a CPU.
        available: what this process could fill with tensors, those that it has included.
    """

    device: str
    total: int
    used: int
    reserved: int | None
    available: int


def in_use(device: torch.device, besides: int = 0) -> InUse:
    """What is in use now; `besides` are the bytes of a CPU's process that are no tensors of the run."""
    return _on_gpu(device) if device.type == "cuda" else _on_cpu(besides)


def resident() -> int:
    """Bytes of this process in the machine's memory."""
    return int(psutil.Process().memory_info().rss)


def _on_gpu(device: torch.device) -> InUse:
    free, total = torch.cuda.mem_get_info(device)
    reserved = torch.cuda.memory_reserved(device)
    return InUse(
        torch.cuda.get_device_name(device), total, torch.cuda.memory_allocated(device), reserved, free + reserved
    )


def _on_cpu(besides: int) -> InUse:
    process = psutil.Process().memory_info()
    machine = psutil.virtual_memory()
    left, total, name = machine.available, machine.total, "the CPU"
    for bound, taken in (
        (_limit(resource.RLIMIT_AS), process.vms),
        (_limit(resource.RLIMIT_DATA), getattr(process, "data", process.rss)),
        (_of_the_container(), process.rss),
    ):
        if bound is not None and bound - taken < left:
            left, total, name = max(bound - taken, 0), bound, "the CPU, as far as this process may"
    return InUse(name, total, process.rss, None, max(process.rss + left - besides, 0))


def _limit(kind: int) -> int | None:
    soft = resource.getrlimit(kind)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _of_the_container() -> int | None:
    try:
        return int(_CGROUP.read_text(encoding="ascii"))
    except (OSError, ValueError):  # there is none, or it sets no limit ("max")
        return None
