"""Did training change anything that it could change? A cheap fingerprint of the trainable weights, before and after."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.tensor import DTensor

CLOSE = 1e-6
"""Of a parameter's norm: sums of the same weights differ by less on another device, and after any step by more."""


@torch.no_grad()
def fingerprint(model: Any) -> torch.Tensor:
    """Sum and norm of each trainable parameter in float64, shape (parameters, 2), of the part that lies here."""
    rows = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            local = local_part(parameter)
            rows.append(
                torch.stack([local.sum(dtype=torch.float64), torch.linalg.vector_norm(local, dtype=torch.float64)])
            )
    return torch.stack(rows).cpu() if rows else torch.zeros(0, 2)


def local_part(parameter: Any) -> torch.Tensor:
    """What this process holds of a parameter."""
    local: torch.Tensor = parameter.to_local() if isinstance(parameter, DTensor) else parameter
    return getattr(parameter, "ds_tensor", local)  # DeepSpeed's share; the parameter itself is empty


def same_weights(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether two fingerprints are those of the same weights, whatever device they were taken on; NaN equals NaN."""
    if before.shape != after.shape:
        return False
    room = (CLOSE * before[:, 1:]).nan_to_num(nan=torch.inf, posinf=torch.inf)
    return bool((((before - after).abs() <= room) | (before.isnan() & after.isnan()) | (before == after)).all())


def changed(before: torch.Tensor, after: torch.Tensor, accelerator: Any) -> bool:
    """Whether any process holds a trainable parameter that differs; a collective with several processes."""
    here = bool(before.shape != after.shape or not torch.equal(before, after))
    if accelerator.num_processes == 1:
        return here
    return bool(accelerator.gather(torch.tensor([here], device=accelerator.device)).any())
