"""Rows for training and rows held out of it, which share no prompt. Pure."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence

from grpo_studio.config import DatasetSettings
from grpo_studio.data.rows import Row, cell
from grpo_studio.errors import DataError

Numbered = tuple[int, Row]
"""A row and its number in the data set, from 1."""


def set_apart(
    rows: Sequence[Numbered], settings: DatasetSettings, prompt: str
) -> tuple[list[Numbered], list[Numbered]]:
    """Split off the held-out rows; rows of one prompt stay on one side.

    Which prompts are held out follows from their text and `settings.held_out_seed` (lowest SHA-256 first), so that runs
    with different training seeds are measured on the same rows and never train on another's test.

    Raises:
        DataError: nothing would be left to train on.
    """
    if not rows:
        raise DataError("no row has a usable prompt; set dataset.columns.prompt to the column of the question")
    keys = [prompt_key(row, prompt) for _, row in rows]
    counts = Counter(keys)
    salt = settings.held_out_seed or ""
    chosen: set[str] = set()
    room = settings.held_out
    for key in sorted(counts, key=lambda key: hashlib.sha256(f"{salt}{key}".encode()).digest()) if room else ():
        if room <= 0:
            break
        chosen.add(key)
        room -= counts[key]
    held_out = [row for row, key in zip(rows, keys, strict=True) if key in chosen]
    train = [row for row, key in zip(rows, keys, strict=True) if key not in chosen]
    if not train:
        raise _none_left(len(rows), counts, settings)
    return train, held_out[: settings.held_out]


def _none_left(rows: int, counts: Mapping[str, int], settings: DatasetSettings) -> DataError:
    what = f"holding out {settings.held_out} of {rows} rows leaves none to train on"
    if len(counts) == 1:
        alike = ", for they all have the same prompt, which stays on one side" if rows > 1 else ""
        return DataError(f"{what}{alike}; set dataset.held_out to 0{' or give more questions' if alike else ''}")
    # Whichever prompt comes last, it stays while fewer rows are held out than the other prompts have.
    most = max(1, min(rows // 5, rows - max(counts.values())))
    return DataError(f"{what}; set dataset.held_out to {most} or less")


def prompt_key(row: Row, prompt: str) -> str:
    """The same text for rows of the same prompt, and for those alone."""
    return json.dumps(cell(row, prompt), default=str)
