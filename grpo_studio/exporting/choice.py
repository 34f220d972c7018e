"""Which checkpoint of a run is carried away."""

from __future__ import annotations

from grpo_studio.checkpoints import FINAL, Checkpoint, find_checkpoint
from grpo_studio.store.folder import RunFolder


def chosen(folder: RunFolder, asked: str | None) -> tuple[Checkpoint, str]:
    """The checkpoint that was asked for, or else the final weights, or else the newest; and which that is, in words.

    Raises:
        CheckpointError: it is missing or damaged. Final weights that are damaged are told, never passed over.
    """
    if asked is None:
        asked = FINAL if (folder.checkpoints / FINAL).exists() else "newest"
    checkpoint = find_checkpoint(folder, asked)
    if checkpoint.name == FINAL:
        return checkpoint, f"the final weights, after {_steps(checkpoint.step)}"
    why = {"newest": ", the newest", "best": ", the best by its held-out score"}.get(asked, "")
    return checkpoint, f"{checkpoint.name}{why}"


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count:,} steps"
