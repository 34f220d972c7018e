"""Local files as rows that are read as they are asked for: JSON Lines, JSON, CSV, Parquet; text also packed (.gz)."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from grpo_studio.config import BUILTIN_DATASET
from grpo_studio.data.csv_rows import open_csv
from grpo_studio.data.file_notes import read_errors, shown_path
from grpo_studio.data.json_rows import json_rows, line_rows
from grpo_studio.data.parquet_rows import open_parquet
from grpo_studio.data.rows import Row, RowStream
from grpo_studio.data.sources import LOCAL_SUFFIXES
from grpo_studio.data.text_lines import TextFile
from grpo_studio.errors import DataError

FILES_NAMED = 5
ENTRIES_LOOKED_AT = 2000
_INSTEAD = {
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods", ".numbers"), "save the table as CSV"),
    **dict.fromkeys((".zip", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".tgz"), "unpack it and give a file in it"),
    **dict.fromkeys((".arrow", ".feather", ".orc", ".avro"), "write it as Parquet"),
    **dict.fromkeys((".pkl", ".pickle", ".pt", ".npy", ".npz"), "write the rows as Parquet or JSON Lines"),
    ".txt": "rename it by what it holds: .csv (a table), .tsv (a table with tabs) or .jsonl (one JSON object a line)",
}
"""What to do with a file of another kind, by the end of its name."""
FOREIGN = (
    (b"PK\x03\x04", "a zip archive or a spreadsheet (.xlsx); save the table as CSV, or unpack the archive"),
    (b"\xd0\xcf\x11\xe0", "an old spreadsheet or document; save the table as CSV"),
    (b"%PDF", "a PDF; give a table or JSON Lines"),
    (b"SQLite format 3", "an SQLite database; write the table as CSV or JSON Lines"),
    (b"ARROW1", "an Arrow file; write it as Parquet"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd; unpack it"),
    (b"\xfd7zXZ", "packed with xz; unpack it"),
    (b"BZh", "packed with bzip2; unpack it"),
    (b"version https://git-lfs", "the pointer of Git LFS, not the data; fetch the data with git lfs pull"),
    (b"PAR1", "a Parquet file; rename it to end in .parquet"),
    (b"\x1f\x8b", "packed with gzip; rename it to end in .gz, or unpack it"),
)
"""Other kinds of files by their first bytes, and what to do with one."""


def open_file(path: Path) -> RowStream:
    """The rows of a local file.

    Raises:
        DataError: it is missing, a folder, a device or of an unknown kind; while rows are read, that it is damaged
            (with the line or row).
    """
    with read_errors(path):
        _require_regular(path)
        kind = suffix_of(path)
        if kind not in _OPENERS:
            fix = _INSTEAD.get(kind, f"give a file that ends in {_known()}")
            raise DataError(f"{shown_path(path)} is of an unknown kind; {fix}")
        _refuse_foreign(path, kind)
        stream = _OPENERS[kind](path)
    return replace(stream, rows=_guarded(path, stream.rows))


def suffix_of(path: Path) -> str:
    """The kind of a file by the end of its name: .jsonl of both rows.jsonl and rows.JSONL.gz."""
    name = path.name.lower()
    return Path(name.removesuffix(".gz") if not name.endswith(".parquet.gz") else name).suffix


def _guarded(path: Path, rows: Iterator[Row]) -> Iterator[Row]:
    with read_errors(path):
        yield from rows


def _require_regular(path: Path) -> None:
    """Refuse what cannot be read from its start to its end: folders, pipes, devices, sockets."""
    name = shown_path(path)
    if path.is_symlink() and not path.exists():
        raise DataError(f"{name} is a link to {shown_path(os.readlink(path))}, which is not there; mend the link")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise DataError(
            f"there is no file {name}; give an existing file, a Hub id (owner/name) or {BUILTIN_DATASET}"
        ) from error
    if stat.S_ISDIR(mode):
        if any(inner.suffix == ".arrow" for inner in _entries(path)):
            raise DataError(f"{name} is a folder that save_to_disk wrote; write the data set with to_parquet instead")
        found = _files_in(path)
        proposal = f"give one of its files: {', '.join(found)}" if found else f"give a file that ends in {_known()}"
        raise DataError(f"{name} is a folder; {proposal}")
    if not stat.S_ISREG(mode):
        raise DataError(f"{name} is no regular file but a device, a pipe or a socket; give a file")


def _files_in(folder: Path) -> list[str]:
    """Some data files of a folder and of the folders in it, as paths."""
    here = _entries(folder)
    found = (path for path in here if path.is_file() and suffix_of(path) in _OPENERS)
    deeper = (
        path
        for inner in here
        if inner.is_dir() and not inner.name.startswith(".")
        for path in _entries(inner)
        if path.is_file() and suffix_of(path) in _OPENERS
    )
    return [shown_path(path) for path in itertools.islice(itertools.chain(found, deeper), FILES_NAMED)]


def _entries(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as found:
            return sorted(Path(entry.path) for entry in itertools.islice(found, ENTRIES_LOOKED_AT))
    except OSError:
        return []


def _refuse_foreign(path: Path, kind: str) -> None:
    with path.open("rb") as file:
        start = file.read(64)
    packed = path.name.lower().endswith(".gz")
    for mark, what in FOREIGN:
        expected = (mark == b"PAR1" and kind == ".parquet") or (mark == b"\x1f\x8b" and packed)
        if start.startswith(mark) and not expected:
            raise DataError(f"{shown_path(path)} is {what}")
    if start.lstrip().lower().startswith((b"<!doctype html", b"<html")):
        raise DataError(f"{shown_path(path)} is a web page, not data; download the file itself (its raw form)")


def _known() -> str:
    return ", ".join(LOCAL_SUFFIXES)


def _open_text(path: Path, rows_of: Callable[[TextFile, list[str]], Iterator[Row]]) -> RowStream:
    file = TextFile(path)
    notes: list[str] = []
    return RowStream(rows_of(file, notes), notes=notes, share=file.share)


def _open_table(path: Path, preferred: str | None = None) -> RowStream:
    return open_csv(TextFile(path), preferred)


_OPENERS: dict[str, Callable[[Path], RowStream]] = {
    ".jsonl": partial(_open_text, rows_of=line_rows),
    ".ndjson": partial(_open_text, rows_of=line_rows),
    ".json": partial(_open_text, rows_of=json_rows),
    ".csv": _open_table,
    ".tsv": partial(_open_table, preferred="\t"),
    ".parquet": open_parquet,
}
