"""Where the libraries load a run's model from; a built-in one is converted first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from grpo_studio.catalog import BUILTIN_MODELS, locate
from grpo_studio.config import RunConfig
from grpo_studio.training.convert import ensure_converted


def model_source(
    config: RunConfig,
    cache: Path,
    tell: Callable[[str], None],
    converting: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> str:
    """A folder or a Hub id. A conversion is done within `converting` and tells how far it is.

    Raises:
        ModelError: the model cannot be found, fetched or converted.
    """
    location = locate(config.model.id, cache)
    if location.kind == "builtin":
        model = BUILTIN_MODELS[location.id]
        with converting():
            return str(ensure_converted(model, cache, lambda what, share: tell(f"{what}, {share:.0%}")))
    return str(location.path or location.id)
