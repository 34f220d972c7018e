"""Which samples are wanted, and the key under which they are kept: it changes with everything that changes them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from grpo_studio.catalog import BUILTIN_MODELS
from grpo_studio.config import RunConfig
from grpo_studio.errors import ConfigError

FORMAT: Final = 1
"""Part of the key: raise it when the same settings would give other samples, or the file another shape."""
MOST_PROMPTS: Final = 10_000
MOST_PER_PROMPT: Final = 4096
_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "max_completion_length", "seed")
EXTRA = ("repetition_penalty", "generation_kwargs", "chat_template_kwargs")
"""Fields of TRL that change what is sampled."""


@dataclass(frozen=True)
class SamplingRequest:
    """`per_prompt` completions for each of `prompts` rows, as a run with `config` would sample them at its start."""

    config: RunConfig
    prompts: int
    per_prompt: int

    @classmethod
    def of(cls, config: RunConfig, prompts: int, per_prompt: int) -> SamplingRequest:
        """A request within bounds.

        Raises:
            ConfigError: too few or too many prompts or completions.
        """
        if not 1 <= prompts <= MOST_PROMPTS:
            raise ConfigError(f"{prompts} prompts cannot be sampled; give a number from 1 to {MOST_PROMPTS}")
        if not 2 <= per_prompt <= MOST_PER_PROMPT:
            raise ConfigError(
                f"groups of {per_prompt} completions cannot be sampled; give a number from 2 to {MOST_PER_PROMPT}"
            )
        return cls(config, prompts, per_prompt)

    @property
    def wanted(self) -> int:
        """Completions in all."""
        return self.prompts * self.per_prompt

    def key(self) -> str:
        """A file name that stands for the samples."""
        config = self.config
        document = {
            "format": FORMAT,
            "model": config.model.model_dump(mode="json"),
            "model_files": _model_files(config.model.id),
            "dataset": config.dataset.model_dump(mode="json"),
            "dataset_file": _stamp(Path(config.dataset.source).expanduser()),
            "sampling": {name: getattr(config.algorithm, name) for name in _SAMPLING},
            "extra": {name: config.algorithm.extra[name] for name in EXTRA if name in config.algorithm.extra},
            "prompts": self.prompts,
            "per_prompt": self.per_prompt,
        }
        return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _model_files(model_id: str) -> Any:
    """What tells one state of a model from another, without reading its weights."""
    if model_id in BUILTIN_MODELS:
        return BUILTIN_MODELS[model_id].sha256
    folder = Path(model_id).expanduser()
    try:
        return [[path.name, _stamp(path)] for path in sorted(folder.iterdir())]
    except (OSError, ValueError):
        return None


def _stamp(path: Path) -> list[int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):  # not a file: a Hub id, or text that no path can have
        return None
    return [status.st_size, status.st_mtime_ns]
