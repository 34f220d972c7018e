"""A model as it scores: evaluation mode, as far as its layers bear it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def scoring_mode(model: Any) -> Iterator[None]:
    """Dropout is off inside. 4-bit layers stay in training mode: on a CPU evaluation mode packs their weights anew, and
    they lose their gradient.
    """
    was_training = model.training
    model.eval()
    for module in model.modules():
        if type(module).__name__ == "Linear4bit":
            module.training = True
    try:
        yield
    finally:
        model.train(was_training)
