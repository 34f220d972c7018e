"""`python -m grpo_studio.training.speed DTYPE`: how fast this device multiplies and copies, measured for a moment.

Prints one JSON document: {"tflops": of a large multiplication in DTYPE, "bandwidth": GB/s read and written in a copy}.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import torch

SECONDS = 0.5
"""How long each of the two is repeated."""


def measure(dtype: torch.dtype, device: torch.device) -> dict[str, float]:
    """The best of some repetitions: what else runs here slows down the others."""
    on_gpu = device.type == "cuda"
    size, length = (8192, 1 << 28) if on_gpu else (1024, 1 << 25)
    left, right = (torch.ones(size, size, dtype=dtype, device=device) for _ in range(2))
    source, target = (torch.ones(length // 4, dtype=torch.float32, device=device) for _ in range(2))

    def copy() -> None:
        target.copy_(source)

    return {
        "tflops": 2 * size**3 / _best(lambda: left @ right, device) / 1e12,
        "bandwidth": 2 * length / _best(copy, device) / 1e9,
    }


def _best(work: Callable[[], object], device: torch.device) -> float:
    """Seconds of the fastest repetition, the first one not counted."""
    best, deadline = float("inf"), time.perf_counter() + SECONDS
    work()
    while time.perf_counter() < deadline or best == float("inf"):
        _wait(device)
        began = time.perf_counter()
        work()
        _wait(device)
        best = min(best, time.perf_counter() - began)
    return best


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(json.dumps(measure(getattr(torch, sys.argv[1]), place)))
