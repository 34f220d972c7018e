"""The frozen batch of a probe: TRL's tensors of one scored generation batch in a file, and larger ones made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

Batch = dict[str, torch.Tensor]
PROMPT = ("prompt_ids", "prompt_mask")
SCALAR = "num_items_in_batch"


def freeze(batch: dict[str, Any], path: Path) -> None:
    """Write the tensors of a scored batch, as TRL made it; what is no tensor a text model has no use for."""
    kept = {name: value.detach().cpu().contiguous() for name, value in batch.items() if torch.is_tensor(value)}
    save_file(kept, path)


def thaw(path: Path, device: torch.device) -> Batch:
    """The batch of a file, on a device."""
    return {name: value.to(device) for name, value in load_file(path).items()}


def widths(batch: Batch) -> tuple[int, int]:
    """Tokens that prompts and completions are padded to."""
    return batch["prompt_ids"].shape[1], batch["completion_ids"].shape[1]


def with_advantages(batch: dict[str, Any], group_size: int) -> dict[str, Any]:
    """The batch with a fixed pattern of advantages: in each group evenly spread ones of mean 0 and deviation 1."""
    old = batch["advantages"]
    steps = torch.linspace(-1.0, 1.0, group_size, dtype=old.dtype, device=old.device)
    pattern = (steps / steps.std()).repeat(old.shape[0] // group_size)
    return batch | {"advantages": pattern.reshape(old.shape) if old.dim() == 1 else pattern[:, None].expand_as(old)}


def unmasked(batch: dict[str, Any]) -> dict[str, Any]:
    """The batch with whole completions where the mask took them out: such were cut off, so no token is padding."""
    mask = batch["completion_mask"].clone()
    mask[mask.sum(1) == 0] = 1
    return batch | {"completion_mask": mask, SCALAR: mask.sum().to(batch[SCALAR].dtype)}


def repeated(batch: Batch, rows: int) -> Batch:
    """A batch of so many completions: the frozen ones over and over, from the one with the shortest prompt on.

    A batch without any padding needs no attention mask and takes less, which few passes of a run are so lucky as to do.
    """
    count = batch["completion_ids"].shape[0]
    first = batch["prompt_mask"].sum(1).argmin()
    picked = (first + torch.arange(rows, device=first.device)) % count
    grown = {name: value[picked] if value.dim() else value for name, value in batch.items()}
    return _counted(grown)


def lengthened(batch: Batch, tokens: int) -> Batch:
    """The batch with completions of exactly so many tokens each, none padded: their own over and over."""
    lengths = batch["completion_mask"].sum(1).clamp(min=1)
    width = batch["completion_ids"].shape[1]
    places = torch.arange(tokens, device=lengths.device)[None, :] % lengths[:, None]
    grown = {
        name: value.gather(1, places) if name not in PROMPT and value.dim() == 2 and value.shape[1] == width else value
        for name, value in batch.items()
    }
    grown["completion_mask"] = torch.ones_like(grown["completion_ids"])
    return _counted(grown)


def _counted(batch: Batch) -> Batch:
    return batch | {SCALAR: batch["completion_mask"].sum().to(batch[SCALAR].dtype)}
