"""Everything that a rehearsal could change, taken before it and put back after: then nothing has happened."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch

FILLED = ("_metrics", "_logs", "_pending_metrics", "_pending_extra_logs", "_tally")
"""Where TRL's trainer (1.16.0) and ours collect what they log."""


@contextmanager
def as_it_was(trainer: Any) -> Iterator[None]:
    """Afterwards random numbers, gradients, buffers, modes and all that the trainer counts are as they were before.

    Weights and the optimizer's state are the business of what runs within: it must not let the optimizer step.
    """
    counted, collected = dict(vars(trainer)), {name: copy.deepcopy(getattr(trainer, name)) for name in FILLED}
    progress = dict(vars(trainer.state))
    models = [model for model in (trainer.model_wrapped, trainer.model, trainer.ref_model) if model is not None]
    modules = list({id(module): module for model in models for module in model.modules()}.values())
    modes = [(module, module.training) for module in modules]
    # With all of their attributes: rotary embeddings that grow with the length remember the greatest.
    buffered = [(module, dict(vars(module)), dict(module._buffers)) for module in modules if module._buffers]
    values = [(tensor, tensor.clone()) for *_, own in buffered for tensor in own.values() if tensor is not None]
    synced = trainer.accelerator.gradient_state.sync_gradients
    try:
        with _same_random_numbers(trainer.accelerator.device):
            yield
    finally:
        _put_back(trainer, counted | collected)
        _put_back(trainer.state, progress)
        trainer.accelerator.gradient_state._set_sync_gradients(synced)
        drop_gradients(trainer)
        for module, attributes, own in buffered:
            _put_back(module, attributes)
            module._buffers.update(own)
        with torch.no_grad():
            for tensor, value in values:
                tensor.copy_(value)
        for module, training in modes:
            module.training = training


def drop_gradients(trainer: Any) -> None:
    """Free the gradients, as the training loop does after a step."""
    for parameter in trainer.model_wrapped.parameters():
        parameter.grad = None


def _put_back(thing: Any, attributes: dict[str, Any]) -> None:
    vars(thing).clear()
    vars(thing).update(attributes)


@contextmanager
def _same_random_numbers(device: torch.device) -> Iterator[None]:
    """Python's, numpy's and torch's generators go on as if nothing had been drawn within."""
    python, of_numpy = random.getstate(), numpy.random.get_state()
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        random.setstate(python)
        numpy.random.set_state(of_numpy)
