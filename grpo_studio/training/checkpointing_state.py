"""What the trainer's own checkpoint leaves out: per process the batch in use and two looks at the weights, and what
the run has counted so far. Read and written without pickled code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import send_to_device

from grpo_studio.errors import CheckpointError
from grpo_studio.training.change import fingerprint, same_weights
from grpo_studio.training.resuming_from import ResumePoint, reading

RUN_STATE = "run_state.json"


def save_process(folder: Path, trainer: Any) -> None:
    """Write what this process holds and no other: every process writes a file of its own."""
    cycle = trainer.args.steps_per_generation * trainer.num_iterations
    state = {
        "micro_batches": trainer._step,
        "batch": trainer._buffered_inputs if trainer._step % cycle else None,
        "before": trainer.before,
        "weights": fingerprint(trainer.model),
        "entropy": (float(trainer.entropy_coef), float(trainer._last_world_entropy)),
    }
    if trainer.args.sync_ref_model:  # a reference that follows the policy is in no other file
        state["reference"] = [local.detach() for local in trainer.reference_weights()]
    torch.save(state, folder / process_file(trainer))


def load_process(point: ResumePoint, trainer: Any) -> dict[str, Any]:
    """What this process saved.

    Raises:
        CheckpointError: it cannot be read.
    """
    path = point.checkpoint.path
    with reading(path):
        state = torch.load(path / process_file(trainer), map_location="cpu", weights_only=True)
        batch = send_to_device(state["batch"], trainer.args.device)
        return state | {"batch": batch, "micro_batches": int(state["micro_batches"])}


def save_run(folder: Path, state: Mapping[str, Any]) -> None:
    """Write what the run has counted; it is the same on every process."""
    (folder / RUN_STATE).write_text(json.dumps(state), encoding="utf-8")


def load_run(point: ResumePoint) -> dict[str, Any]:
    """What the run had counted.

    Raises:
        CheckpointError: it cannot be read.
    """
    with reading(point.checkpoint.path):
        state = json.loads((point.checkpoint.path / RUN_STATE).read_text(encoding="utf-8"))
        return dict(state)


def require_weights(point: ResumePoint, saved: torch.Tensor, model: Any) -> None:
    """Make sure that the model now has the weights of the checkpoint: loading passes over names that it does not know.

    Raises:
        CheckpointError: it has not.
    """
    if not same_weights(saved, fingerprint(model)):
        raise CheckpointError(
            f"the weights of {point.checkpoint.name} did not reach the model whole; use the versions of torch, "
            "transformers and peft that it was saved with"
        )


def process_file(trainer: Any) -> str:
    return f"process_state_{trainer.args.process_index}.pt"
