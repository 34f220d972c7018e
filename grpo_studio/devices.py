"""What this machine computes with, asked from the outside: no torch is loaded for it."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

import psutil

CPU_ENVIRONMENT = {
    # TRL compiles its fused LM head; through inductor on a CPU the first steps then take minutes.
    "TORCHDYNAMO_DISABLE": "1",
    # glibc hands large blocks back and faults them in again: measured in bench/allocator.py.
    "MALLOC_MMAP_THRESHOLD_": "8589934592",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "536870912",
}


@dataclass(frozen=True)
class Device:
    """The device that runs use. `total` and `used` are bytes: of the card, or of the machine on a CPU."""

    kind: str
    name: str
    total: int
    used: int


def current_device() -> Device:
    """The first GPU that nvidia-smi names, else the CPU."""
    return _gpu() or _cpu()


def worker_environment() -> dict[str, str]:
    """Variables that a worker wants: the first GPU that may be seen; on a CPU what measured faster.

    A trainer that sees several GPUs in one process would use torch's DataParallel, which TRL refuses.
    """
    if _gpu() is None:
        return dict(CPU_ENVIRONMENT)
    return {"CUDA_VISIBLE_DEVICES": (os.environ.get("CUDA_VISIBLE_DEVICES") or "0").split(",")[0]}


def _cpu() -> Device:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = psutil.virtual_memory()
    return Device("cpu", f"CPU, {cores} cores", memory.total, memory.total - memory.available)


def _gpu() -> Device | None:
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=name,memory.total,memory.used", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout
        name, total, used = (part.strip() for part in answer.splitlines()[0].split(","))
        return Device("cuda", name, int(total) << 20, int(used) << 20)
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        return None
