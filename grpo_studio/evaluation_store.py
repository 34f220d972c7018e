"""Evaluations made after the fact: each a database of its own in the run's evaluations/, whole or not there at all."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grpo_studio.disk import told_when_full
from grpo_studio.errors import StoreError
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.records import GroupRecord
from grpo_studio.store.schema import make_plain
from grpo_studio.store.writer import RunWriter


def write_evaluation(
    folder: RunFolder,
    checkpoint: str,
    step: int,
    groups: Sequence[GroupRecord],
    metrics: Mapping[str, float | None],
    data: Mapping[str, Any],
) -> str:
    """Write the scored rows aside and rename them when they are whole; returns the name of the evaluation.

    Raises:
        StoreError: the folder cannot be written; nothing is left behind.
    """
    moment = time.strftime("%Y%m%d-%H%M%S")
    name = f"{checkpoint}-{moment}-{secrets.token_hex(2)}"
    aside = folder.evaluations / f".new-{name}.db"
    try:
        with told_when_full(folder.evaluations, "the evaluation"):
            folder.evaluations.mkdir(exist_ok=True)
            _write(aside, checkpoint, step, groups, metrics, data)
            aside.rename(folder.evaluations / f"{name}.db")
    except BaseException as error:
        for path in folder.evaluations.glob(f"{aside.name}*"):
            path.unlink(missing_ok=True)
        if isinstance(error, OSError | sqlite3.Error) and not isinstance(error, StoreError):
            raise StoreError(f"cannot write the evaluation in {folder.evaluations}: {error}") from error
        raise
    return name


def _write(
    path: Path,
    checkpoint: str,
    step: int,
    groups: Sequence[GroupRecord],
    metrics: Mapping[str, float | None],
    data: Mapping[str, Any],
) -> None:
    writer = RunWriter(path, attempt=1)
    try:
        with writer.transaction():
            writer.groups(step, groups)
            writer.metrics(step, metrics)
            about = {"checkpoint": checkpoint, "step": step, **data}
            writer.event("evaluated", f"{checkpoint} scored on the held-out rows", data=about)
    finally:
        writer.close()
    make_plain(path)
