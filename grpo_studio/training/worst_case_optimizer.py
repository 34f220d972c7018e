"""An optimizer's step without the weights: by its own class, over the gradients, which nobody needs any more.

The state that it makes and what it takes while it steps are the real ones; the memory of the gradients stands for
itself, and the weights stay as they are.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch

from grpo_studio.training.change import local_part


def rehearse_optimizer(trainer: Any) -> list[torch.Tensor]:
    """The state that it made, to be held as long as it is to take room.

    Nothing when the run's own optimizer has its state already, as after a resume: that takes its room by itself.
    """
    optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)  # accelerate wraps it
    if optimizer.state:
        return []
    groups = []
    for group in optimizer.param_groups:
        members = [_stand_in(parameter) for parameter in group["params"] if parameter.grad is not None]
        groups.append({**{name: value for name, value in group.items() if name != "params"}, "params": members})
    taken = inspect.signature(type(optimizer)).parameters  # AdamW notes a default that it does not take
    defaults = {name: value for name, value in optimizer.defaults.items() if name in taken}
    stand_in: torch.optim.Optimizer = type(optimizer)(groups, **defaults)
    stand_in.step()
    made = (value for state in stand_in.state.values() for value in state.values())
    return [value for value in made if isinstance(value, torch.Tensor)]


def _stand_in(parameter: torch.nn.Parameter) -> torch.nn.Parameter:
    gradient = local_part(parameter.grad)
    weight = torch.nn.Parameter(gradient)
    weight.grad = gradient
    return weight
