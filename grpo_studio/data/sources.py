"""What the text of `dataset.source` means, by its form and the local disk alone."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from grpo_studio.config import BUILTIN_PREFIX

TEXT_SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
LOCAL_SUFFIXES = (*TEXT_SUFFIXES, ".parquet", *(f"{suffix}.gz" for suffix in TEXT_SUFFIXES))
"""How the names of files end that can be read; texts may be packed."""
GYM_PREFIX = "reasoning_gym:"
SourceKind = Literal["builtin", "reasoning_gym", "file", "hub"]


def kind_of(source: str) -> SourceKind:
    """Made in place by its prefix; a file that is there or looks like one; else a data set of the Hub."""
    if source.startswith(BUILTIN_PREFIX):
        return "builtin"
    if source.startswith(GYM_PREFIX):
        return "reasoning_gym"
    path = Path(source).expanduser()
    return "file" if path.name.lower().endswith(LOCAL_SUFFIXES) or path.exists() else "hub"


def is_made(source: str) -> bool:
    """Whether the rows are made in place: no file, no network."""
    return kind_of(source) in ("builtin", "reasoning_gym")


def is_on_hub(source: str) -> bool:
    """Whether a source means a data set of the Hub."""
    return kind_of(source) == "hub"
