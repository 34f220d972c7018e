"""A reward model: a trained sequence-classification model scores the conversation. The trainer runs it, no judge."""

from __future__ import annotations

from typing import Literal

from grpo_studio.verifiers import Verdict, verifier

LARGEST_BATCH = 4096


def check(model: str, revision: str | None, batch_size: int, max_length: int | None, scale: str) -> str | None:
    """What can be told without the model: an empty name, sizes out of range."""
    if not model.strip():
        return "model is empty; give a Hub id (owner/name) or a folder"
    if model.startswith("builtin:"):
        return f"{model} writes text and scores none; give a sequence-classification model"
    if not 1 <= batch_size <= LARGEST_BATCH:
        return f"batch_size is {batch_size}; use 1 to {LARGEST_BATCH}"
    if max_length is not None and max_length < 1:
        return f"max_length is {max_length}; use 1 or more tokens, or leave it out for all that the model takes"
    return None


@verifier(
    examples=[("It is 12.", {"prompt": "What is 5 + 7?", "model": "owner/name"}, None)], check=check, place="trainer"
)
def reward_model(
    completion: str,
    prompt: str = "",
    *,
    model: str,
    revision: str | None = None,
    batch_size: int = 16,
    max_length: int | None = None,
    scale: Literal["raw", "sigmoid"] = "raw",
) -> Verdict:
    """A sequence-classification model scores the conversation, in batches on the training device.

    `model` is a Hub id or a folder. It reads prompt and completion through its own chat template, or as plain text on
    two lines when it has none; what is longer than `max_length` tokens (by default than the model takes) loses its
    beginning. `raw` is the model's output for its only or last label; `sigmoid` brings it between 0 and 1 (with
    several labels: the probability of the last one).
    """
    return Verdict(None, "the trainer scores this one, on its own device; it has no score outside a run")
