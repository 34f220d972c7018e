"""Paths that begin with what a person typed: folders, and the files in them that can be picked. No gradio here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from grpo_studio.data import LOCAL_SUFFIXES

Kind = Literal["model", "dataset"]
MOST_ROWS = 60
MOST_ENTRIES = 5_000
"""Names of one folder that are looked at; a folder of a million files costs no more."""
SUFFIXES: dict[Kind, tuple[str, ...]] = {"model": (".gguf",), "dataset": LOCAL_SUFFIXES}
_BARE = {"~", ".", ".."}


def path_rows(kind: Kind, text: str) -> list[dict[str, Any]]:
    """[{"value", "note", "kind", "bytes"}] for a text that begins with / ~ or a dot; [] for any other.

    `kind` is file, model (a folder that holds one) or folder; what can be picked comes first.
    """
    if not text.startswith(("/", "~/", "./", "../")) and text not in _BARE:
        return []
    head, _, prefix = (text + "/" if text in _BARE else text).rpartition("/")
    try:
        with os.scandir(Path(f"{head}/").expanduser()) as entries:
            named = [entry for entry in islice(entries, MOST_ENTRIES) if _fits(entry.name, prefix)]
            rows = list(islice(_rows(kind, head, sorted(named, key=lambda entry: entry.name.lower())), MOST_ENTRIES))
    except (OSError, ValueError, RuntimeError):  # no such folder, a null character, nobody's home
        return []
    return sorted(rows, key=lambda row: row["kind"] == "folder")[:MOST_ROWS]


def _fits(name: str, prefix: str) -> bool:
    hidden = name.startswith(".") and not prefix.startswith(".")
    return name.lower().startswith(prefix.lower()) and name.isprintable() and not hidden


def _rows(kind: Kind, head: str, entries: list[os.DirEntry[str]]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        value = f"{head}/{entry.name}"
        try:
            if entry.is_dir():
                model = kind == "model" and os.path.isfile(os.path.join(entry.path, "config.json"))
                yield {"value": value, "kind": "model"} if model else {"value": f"{value}/", "kind": "folder"}
            elif entry.is_file() and entry.name.lower().endswith(SUFFIXES[kind]):
                yield {"value": value, "kind": "file", "bytes": entry.stat().st_size}
        except OSError:
            continue  # gone meanwhile, or not ours to look at
