"""Leave out of the update what cannot teach: completions with advantage 0, and those that the mask takes out whole.

Exact where a completion enters the loss through its advantage alone: no KL term, no entropy bonus, no router loss, no
threshold taken over all tokens (DAPO, arXiv 2503.14476, section 3.2, on what dead groups cost).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import TrainerCallback

from grpo_studio.group_kind import EQUAL

MEAN_OVER_ROWS = ("grpo", "sapo", "dr_grpo", "luspo")


@dataclass(frozen=True)
class Thinned:
    """A micro-batch without its dead rows.

    Args:
        inputs: TRL's micro-batch, of the kept rows.
        share: what the kept rows' loss is multiplied by, so that it is divided as that of the whole micro-batch.
        alive: rows that carry gradient, the most on any process.
    """

    inputs: dict[str, Any]
    share: float
    alive: int


def whole(inputs: dict[str, Any]) -> Thinned:
    """The micro-batch as it is, where dead groups are not to be skipped."""
    return Thinned(inputs, 1.0, inputs["completion_mask"].shape[0])


def thin(inputs: dict[str, Any], loss_type: str, accelerator: Any) -> Thinned:
    """Drop the rows of a micro-batch that carry no gradient. A collective when there are several processes.

    Every process keeps as many rows as the one with most alive, so that all take part in the same collectives with
    the same shapes; a process with fewer fills up with dead ones, whose loss is 0. With none alive anywhere, two tokens
    of one dead row are kept, so that there is a forward and a backward pass to join.
    """
    mask = inputs["completion_mask"]
    learning = (inputs["advantages"] != 0) & (mask.sum(1) > 0)
    alive = int(_greatest(learning.sum(), accelerator))
    rows, tokens = mask.shape[0], int(mask.sum())
    if alive == rows:
        return Thinned(inputs, 1.0, alive)
    order = torch.argsort(learning.int(), descending=True, stable=True)
    kept = keep_rows(inputs, order[: max(alive, 1)].sort().values)
    kept = one_token(kept) if alive == 0 else kept
    share = 1.0
    if loss_type in MEAN_OVER_ROWS:
        share = kept["completion_mask"].shape[0] / rows
    elif loss_type == "bnpo":
        share = max(int(kept["completion_mask"].sum()), 1) / max(tokens, 1)
    return Thinned(kept, share, alive)


def keep_rows(inputs: dict[str, Any], rows: torch.Tensor) -> dict[str, Any]:
    """The micro-batch of these rows alone, without the columns that only longer completions needed."""
    count, width = inputs["completion_mask"].shape
    picked = {
        name: value[rows] if isinstance(value, torch.Tensor) and value.dim() and value.shape[0] == count else value
        for name, value in inputs.items()
    }
    longest = max(1, int(picked["completion_mask"].sum(1).max()))
    return _cut_columns(picked, width, longest)


def one_token(inputs: dict[str, Any]) -> dict[str, Any]:
    """Of each row the last prompt token and the first of the completion."""
    cut = _cut_columns(inputs, inputs["completion_mask"].shape[1], 1)
    return cut | {name: cut[name][:, -1:] for name in ("prompt_ids", "prompt_mask")}


def _cut_columns(inputs: dict[str, Any], width: int, longest: int) -> dict[str, Any]:
    """Completions lie on the left of their columns, so a causal model's outputs for them do not change."""
    return {
        name: value[:, :longest]
        if name not in ("prompt_ids", "prompt_mask")
        and isinstance(value, torch.Tensor)
        and value.dim() > 1
        and value.shape[1] == width
        else value
        for name, value in inputs.items()
    }


def without_rounding(advantages: torch.Tensor, rewards: torch.Tensor, group_size: int) -> torch.Tensor:
    """Advantages with exact zeros in dead groups, where the rounding of a float32 mean leaves a trace.

    Args:
        advantages: (N,) for N completions, the G of a prompt side by side.
        rewards: (N, K), what the advantages are made of; a group is dead when each column is all equal. NaN rewards
            do not count.
        group_size: G.
    """
    groups = rewards.view(-1, group_size, rewards.shape[1])
    low = groups.nan_to_num(nan=torch.inf).amin(1)
    high = groups.nan_to_num(nan=-torch.inf).amax(1)
    dead = (high - low <= EQUAL).all(1).repeat_interleave(group_size)
    return advantages.masked_fill(dead, 0.0)


def _greatest(value: torch.Tensor, accelerator: Any) -> torch.Tensor:
    if accelerator.num_processes == 1:
        return value
    return accelerator.gather(value.reshape(1)).max()


class DeadStepCallback(TrainerCallback):
    """A step without a single living completion leaves the weights as they are: no momentum, no weight decay.

    Without gradients an optimizer passes a parameter by. DeepSpeed steps on its own, before this is asked.
    """

    def __init__(self, model: Any, dead: Callable[[], bool]) -> None:
        self._model = model
        self._dead = dead

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._dead():
            for parameter in self._model.parameters():
                parameter.grad = None
