"""The probes of a home folder: `probes/<id>/probe.json` each, made aside and renamed, so one is whole or not there."""

from __future__ import annotations

import heapq
import json
import os
import secrets
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from grpo_studio.disk import told_when_full
from grpo_studio.errors import RunNotFoundError, StoreError
from grpo_studio.memory.probe_document import ProbeDocument
from grpo_studio.settings import Settings
from grpo_studio.shown import shown
from grpo_studio.store.folder import RUN_ID, slug

FILE = "probe.json"
LARGEST_FILE = 4 << 20
LISTED = 50
"""The newest that are read; a folder may hold any number."""


@dataclass(frozen=True)
class ProbeResult:
    """One probe; `document` is None and `problem` one line when its file cannot be read."""

    id: str
    document: ProbeDocument | None
    problem: str | None = None


def probes_dir(settings: Settings) -> Path:
    """The folder of the probes; it need not exist."""
    return settings.home / "probes"


def probe_results(settings: Settings, limit: int = LISTED) -> list[ProbeResult]:
    """The newest probes, newest first; a damaged one is listed with what is wrong with it."""
    folder = probes_dir(settings)
    try:
        with os.scandir(folder) as entries:
            names = (one.name for one in entries if RUN_ID.fullmatch(one.name) and one.is_dir(follow_symlinks=False))
            newest = heapq.nlargest(limit, names)
    except OSError:  # none was made yet, or the folder cannot be read: a run is not stopped by that
        return []
    return [_read(folder / name) for name in newest]


def read_probe(settings: Settings, probe: str) -> ProbeDocument:
    """One probe by its id.

    Raises:
        RunNotFoundError: there is none of that id.
        StoreError: its file is damaged.
    """
    folder = probes_dir(settings) / probe
    if RUN_ID.fullmatch(probe) is None or folder.is_symlink() or not folder.is_dir():
        raise RunNotFoundError(f"no probe {shown(repr(probe))}; see the list of probes")
    found = _read(folder)
    if found.document is None:
        raise StoreError(f"the probe {probe} cannot be read: {found.problem}; remove {folder}, and probe again")
    return found.document


def new_probe_id(name: str, now: float) -> str:
    """An id like a run's: time, name, something random."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{slug(name)}-{secrets.token_hex(2)}"


def keep_probe(settings: Settings, document: ProbeDocument) -> Path:
    """Write a probe's result; returns its folder.

    Raises:
        DiskFullError, StoreError: it cannot be written; nothing is left of it.
    """
    folder = probes_dir(settings)
    staging = folder / f".new-{document.id}"
    text = json.dumps(document.as_dict(), ensure_ascii=True, allow_nan=False, indent=1)
    try:
        with told_when_full(folder, "the result of the probe", len(text)):
            staging.mkdir(parents=True)
            (staging / FILE).write_text(text, encoding="utf-8")
            return staging.rename(folder / document.id)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        if isinstance(error, StoreError):
            raise
        raise StoreError(
            f"cannot keep the probe in {folder}: {error.strerror or error}; set GRPO_STUDIO_HOME to a folder that you "
            "can write to"
        ) from error


def _read(folder: Path) -> ProbeResult:
    path = folder / FILE
    try:
        if path.is_symlink() or not path.is_file():
            raise ValueError(f"it has no {FILE}")
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise ValueError(f"its {FILE} is larger than {LARGEST_FILE >> 20} MB")
        document = ProbeDocument.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        return ProbeResult(folder.name, None, shown(f"{where}: {first['msg']}" if where else first["msg"], 200))
    except (OSError, ValueError, RecursionError) as error:
        return ProbeResult(folder.name, None, shown(str(error), 200))
    if document.id != folder.name:
        return ProbeResult(folder.name, None, shown(f"its id is {document.id}, not that of its folder", 200))
    return ProbeResult(folder.name, document)
