"""A gradient in a file, and how far another one is from it; neither is ever held a second time.

The file holds the tensors one after the other as they lie in memory; an index beside it tells where each begins.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grpo_studio.disk import require_space, told_when_full

AT_ONCE = 1 << 22
"""Elements that are taken to double precision at a time: 32 MiB."""
WHAT = "the gradient that the other backends are compared with"


def norm(model: Any) -> float:
    """Euclidean norm of the gradient of all trained parameters, in double precision."""
    return math.sqrt(sum(float(part.square().sum()) for _, grad in _gradients(model) for part in _parts(grad)))


def write_gradient(model: Any, path: Path) -> None:
    """Write a model's gradient.

    Raises:
        DiskFullError: there is no room for it; nothing is left.
    """
    needed = sum(grad.numel() * grad.element_size() for _, grad in _gradients(model))
    require_space(path.parent, needed, WHAT)
    index: dict[str, Any] = {}
    try:
        with told_when_full(path.parent, WHAT, needed), path.open("wb") as file:
            for name, grad in _gradients(model):
                index[name] = {"start": file.tell(), "dtype": str(grad.dtype).removeprefix("torch.")}
                for flat in grad.detach().reshape(-1).split(AT_ONCE):
                    file.write(flat.cpu().contiguous().view(torch.uint8).numpy().tobytes())
        _index(path).write_text(json.dumps(index), encoding="utf-8")
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def difference(model: Any, path: Path) -> float | None:
    """Norm of the difference to the gradient in a file, over that one's norm; None when that one is 0.

    A parameter without a gradient counts as one of zeros, on either side.
    """
    index: dict[str, Any] = json.loads(_index(path).read_text(encoding="utf-8"))
    apart = reference = 0.0
    for name, parameter in model.named_parameters():
        grad, known = parameter.grad, index.get(name)
        if grad is None and known is None:
            continue
        for start in range(0, parameter.numel(), AT_ONCE):
            count = min(AT_ONCE, parameter.numel() - start)
            theirs = _read(path, known, start, count)
            ours = torch.zeros(count, dtype=torch.double) if grad is None else _double(grad, start, count)
            apart += float((ours - theirs).square().sum())
            reference += float(theirs.square().sum())
    return math.sqrt(apart / reference) if reference > 0 else None


def _gradients(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            yield name, parameter.grad


def _parts(grad: torch.Tensor) -> Iterator[torch.Tensor]:
    for start in range(0, grad.numel(), AT_ONCE):
        yield _double(grad, start, min(AT_ONCE, grad.numel() - start))


def _double(grad: torch.Tensor, start: int, count: int) -> torch.Tensor:
    return grad.detach().reshape(-1)[start : start + count].cpu().double()


def _read(path: Path, known: dict[str, Any] | None, start: int, count: int) -> torch.Tensor:
    if known is None:
        return torch.zeros(count, dtype=torch.double)
    dtype: torch.dtype = getattr(torch, known["dtype"])
    raw = np.fromfile(path, np.uint8, count * dtype.itemsize, offset=known["start"] + start * dtype.itemsize)
    return torch.from_numpy(raw).view(dtype).double()


def _index(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")
