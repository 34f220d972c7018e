"""What tests of the bench work on: a row, a folder of verifiers, settings to sample by, and the processes that do."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from grpo_studio.config import RewardSettings, RunConfig
from grpo_studio.data import Sample

HEAD = "import re\nimport time\nfrom grpo_studio.verifiers import Verdict, verifier\n"
LONG = 400
"""Tokens of a completion that takes the tiny model a while."""


def row(question: str, answer: Any) -> Sample:
    """A row as a data set with these two columns gives it."""
    return Sample(({"role": "user", "content": question},), question, answer, {"answer": answer})


def weighted(names: str, **weights: float) -> list[RewardSettings]:
    """The verifiers of these names, each with the weight given or 1."""
    return [RewardSettings(verifier=name, weight=weights.get(name, 1.0)) for name in names.split()]


def folder_of(factory: pytest.TempPathFactory, *files: str) -> Path:
    """A folder with a file of verifiers for each text; the imports are put before it."""
    folder = factory.mktemp("rewards")
    for number, text in enumerate(files):
        (folder / f"verifiers_{number}.py").write_text(HEAD + text)
    return folder


def config(model: Path | str, tokens: int = 6, **algorithm: object) -> RunConfig:
    """Settings to sample the built-in data set by."""
    return RunConfig.model_validate(
        {
            "model": {"id": str(model)},
            "dataset": {"held_out": 4, "prompt_template": "What is {prompt}?"},
            "algorithm": {"max_completion_length": tokens, **algorithm},
        }
    )


def children(pid: int | None = None) -> list[psutil.Process]:
    """The living sampling processes of a process, of this one by default."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if "grpo_studio.training.sample_groups" in child.cmdline():
                found.append(child)
    return found
