"""Did training change anything that it could change? A cheap fingerprint of the trainable weights, before and after."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.tensor import DTensor


@torch.no_grad()
def fingerprint(model: Any) -> torch.Tensor:
    """Sum and norm of each trainable parameter in float64, shape (parameters, 2), of the part that lies here."""
    rows = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            local = parameter.to_local() if isinstance(parameter, DTensor) else parameter
            local = getattr(parameter, "ds_tensor", local)  # DeepSpeed's share; the parameter itself is empty
            rows.append(
                torch.stack([local.sum(dtype=torch.float64), torch.linalg.vector_norm(local, dtype=torch.float64)])
            )
    return torch.stack(rows).cpu() if rows else torch.zeros(0, 2)


def changed(before: torch.Tensor, after: torch.Tensor, accelerator: Any) -> bool:
    """Whether any process holds a trainable parameter that differs; a collective with several processes."""
    here = bool(before.shape != after.shape or not torch.equal(before, after))
    if accelerator.num_processes == 1:
        return here
    return bool(accelerator.gather(torch.tensor([here], device=accelerator.device)).any())
