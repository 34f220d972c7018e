"""What a script is made of: plain values that were read from a run's folder, its data and its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpo_studio.run_facts import setup_of, versions_in
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader
from grpo_studio.store.records import AttemptStart


@dataclass(frozen=True)
class Recorded:
    """What a run has told of itself.

    `device`, `dtype` and `train_rows` are None, and `first_prompts` (those of step 1) empty, before it has trained.
    `card` and `versions` (by package) are what it trained on and with, where it recorded them.
    """

    device: str | None
    dtype: str | None
    train_rows: int | None
    first_prompts: tuple[str, ...]
    attempts: tuple[AttemptStart, ...]
    card: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def newest(self) -> AttemptStart:
        return self.attempts[-1]


@dataclass(frozen=True)
class ScriptRow:
    """A row as the run trained on it: the prompt that TRL is given, its text, the columns for verifiers."""

    prompt: Any
    question: str
    columns: Mapping[str, Any]


@dataclass(frozen=True)
class ScriptFacts:
    """What it takes the libraries to find out.

    Args:
        grpo: the fields of TRL's GRPOConfig, but for where the output goes.
        model: the folder that the run loaded its model from, or an id on the Hub.
        revision: of a model on the Hub.
        template: the text of the chat template in force; None when the model has none or more than one.
        plain: prompts are plain text although the model has a template.
        end_token: the end token that a chosen template brings.
        dtype: number format of the weights.
        rows: in the order of the run's training rows; `cut` tells why they are fewer.
    """

    grpo: Mapping[str, Any]
    model: Path | str
    revision: str | None
    template: str | None
    plain: bool
    end_token: str | None
    dtype: str
    on_cpu: bool
    rows: Sequence[ScriptRow]
    cut: str = ""


def recorded(folder: RunFolder) -> Recorded:
    """Read it from the run's database.

    Raises:
        StoreError: it cannot be read.
    """
    with RunReader(folder.database) as reader:
        setup = setup_of(reader)
        first = reader.rows(
            "SELECT prompt FROM prompt_group WHERE split = 'train' AND step = 1 AND attempt = 1 ORDER BY id"
        )
        return Recorded(
            _text(setup.get("device")),
            _text(setup.get("dtype")),
            setup["train_rows"] if isinstance(setup.get("train_rows"), int) else None,
            tuple(str(prompt) for (prompt,) in first),
            tuple(reader.attempts()),
            _text(setup.get("card")),
            versions_in(setup),
        )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
