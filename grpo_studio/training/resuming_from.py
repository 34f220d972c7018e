"""What an attempt goes on from: a checkpoint that is whole and fits the settings and the data, or nothing at all."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from grpo_studio.checkpoints import NAME, Checkpoint, read_checkpoint
from grpo_studio.config import RunConfig
from grpo_studio.data import Sample
from grpo_studio.errors import CheckpointError, StudioError
from grpo_studio.resume_rules import FREE, changes, named_by, refusal, refusal_of_branch, settings_that_matter
from grpo_studio.shown import shown
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader

STATE = "trainer_state.json"
KEEPS_THE_BATCH = (
    *FREE,
    "algorithm.learning_rate", "algorithm.lr_schedule", "algorithm.warmup_ratio", "algorithm.steps",
    "algorithm.max_grad_norm", "algorithm.epsilon", "algorithm.epsilon_high", "algorithm.delta", "evaluation.",
)  # fmt: skip
"""Settings that a sampled batch does not know of: when only these change, a branch goes on with the one at hand."""
_UNREADABLE = (
    OSError, ValueError, TypeError, LookupError, AttributeError, EOFError, RuntimeError, pickle.UnpicklingError,
    SafetensorError,
)  # fmt: skip


@dataclass(frozen=True)
class ResumePoint:
    """A checkpoint that training goes on from.

    Args:
        branch: a new run begins here: what its settings say of learning rate and schedule counts, not what was saved.
        keeps_batch: the batch that was in use when it was saved is used further.
    """

    checkpoint: Checkpoint
    branch: bool
    keeps_batch: bool

    @property
    def step(self) -> int:
        return self.checkpoint.step


def resume_point(folder: RunFolder, config: RunConfig, attempt: int) -> ResumePoint | None:
    """What an attempt goes on from, None when it begins at step 0. The first attempt of a run with one is a branch.

    Raises:
        CheckpointError: the checkpoint is missing, half-written or damaged, or not one for these settings.
    """
    with RunReader(folder.database) as reader:
        begin = next((one for one in reader.attempts() if one.attempt == attempt), None)
    if begin is None or begin.checkpoint is None:
        return None
    if not NAME.fullmatch(begin.checkpoint):
        raise CheckpointError(f"nothing can go on from {shown(begin.checkpoint)}; use a checkpoint-<step>")
    checkpoint = read_checkpoint(folder.checkpoints / begin.checkpoint)
    manifest, branch = checkpoint.manifest, attempt == 1
    if not manifest.resumable:
        raise CheckpointError(f"{checkpoint.name} holds weights alone; use one that was saved while training")
    if checkpoint.step != begin.from_step:
        raise CheckpointError(
            f"{checkpoint.name} holds {checkpoint.step} steps, and the attempt is to begin after {begin.from_step}; "
            "resume the run again"
        )
    rule = refusal_of_branch if branch else refusal
    if reason := rule(manifest.settings, config):
        raise CheckpointError(reason)
    if branch and config.algorithm.steps <= checkpoint.step:
        raise CheckpointError(
            f"algorithm.steps is {config.algorithm.steps}, and {checkpoint.name} has them behind it; use more"
        )
    _require_state(checkpoint)
    changed = changes(manifest.settings, settings_that_matter(config))
    kept = not branch or all(named_by(KEEPS_THE_BATCH, change.field) for change in changed)
    return ResumePoint(checkpoint, branch, kept)


def data_facts(samples: Sequence[Sample]) -> dict[str, Any]:
    """Number and digest of the training rows, as a checkpoint's manifest holds them."""
    digest = hashlib.sha256()
    for sample in samples:
        row = [[dict(message) for message in sample.messages], sample.answer, dict(sample.columns)]
        digest.update(json.dumps(row, sort_keys=True, default=repr).encode())
    return {"rows": len(samples), "sha256": digest.hexdigest()}


def require_same_data(point: ResumePoint, facts: dict[str, Any]) -> None:
    """Refuse to go on with other training rows. A branch may have others.

    Raises:
        CheckpointError: the rows differ; the message gives both numbers.
    """
    saved = point.checkpoint.manifest.data
    if point.branch or all(saved.get(name) == value for name, value in facts.items()):
        return
    found = (
        f"it had {shown(saved.get('rows'))} training rows when {point.checkpoint.name} was saved and has "
        f"{facts['rows']:,} now"
        if saved.get("rows") != facts["rows"]
        else f"its {facts['rows']:,} training rows are not those that {point.checkpoint.name} was saved with"
    )
    raise CheckpointError(f"the data set has changed: {found}; put the old rows back, or begin a branch with the new")


@contextmanager
def reading(checkpoint: Path) -> Iterator[None]:
    """Whatever is raised within because of what the files hold leaves as one error that names the checkpoint.

    Raises:
        CheckpointError: it cannot be read.
    """
    try:
        yield
    except (StudioError, torch.OutOfMemoryError):
        raise
    except _UNREADABLE as error:
        reason = shown(f"{type(error).__name__}: {error}", 300)
        raise CheckpointError(
            f"the checkpoint {checkpoint.name} cannot be read: {reason}; branch from an earlier one"
        ) from error


def _require_state(checkpoint: Checkpoint) -> None:
    """The trainer begins at step 0, without a word, where its state is missing."""
    with reading(checkpoint.path):
        state = json.loads((checkpoint.path / STATE).read_text(encoding="utf-8"))
        step = state["global_step"]
    if step != checkpoint.step:
        raise CheckpointError(f"the checkpoint {checkpoint.name} is damaged: its {STATE} is of step {shown(step)}")
