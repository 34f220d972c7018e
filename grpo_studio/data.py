"""Data sets: built-in arithmetic, local files, the Hub; columns mapped, prompts rendered, held-out rows set apart.

Every cell reaches a run as text unless it is a list or mapping, so that 007 stays 007. No torch here.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_studio.arithmetic import builtin_rows
from grpo_studio.config import BUILTIN_DATASET, DatasetSettings
from grpo_studio.errors import DataError
from grpo_studio.hub import require_readable

Row = Mapping[str, Any]
LOCAL_SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")


@dataclass(frozen=True)
class Sample:
    """One question as a run uses it: chat messages, the gold answer, and all columns for the verifiers."""

    messages: tuple[Mapping[str, str], ...]
    question: str
    answer: Any
    columns: Mapping[str, Any]


@dataclass(frozen=True)
class DataSplits:
    """Rows for training and for evaluation, which share no question; `rows_read` counts rows before both."""

    train: tuple[Sample, ...]
    held_out: tuple[Sample, ...]
    rows_read: int
    dropped: int


def load(settings: DatasetSettings) -> DataSplits:
    """Read the data set, map its columns and set the held-out rows apart.

    Rows without a usable prompt are dropped and counted.

    Raises:
        DataError: the source cannot be read, lacks a mapped column, or holds too few rows.
    """
    if settings.source.startswith("builtin:"):
        train, held_out, rows_read = builtin_rows(settings)
    else:
        rows = read_rows(settings)
        rows_read = len(rows)
        rows = rows[: settings.limit]
        require_columns(rows, settings)
        train, held_out = set_apart(rows, settings)
    samples = [to_sample(row, settings) for row in train]
    kept = tuple(sample for sample in samples if sample is not None)
    evaluation = tuple(sample for row in held_out if (sample := to_sample(row, settings)) is not None)
    return DataSplits(kept, evaluation, rows_read, len(train) + len(held_out) - len(kept) - len(evaluation))


# Files and the Hub


def is_on_hub(source: str) -> bool:
    """Whether a source means a data set of the Hub: no built-in one, no file that is there or looks like one."""
    path = Path(source).expanduser()
    return not (source.startswith("builtin:") or path.suffix.lower() in LOCAL_SUFFIXES or path.exists())


def read_rows(settings: DatasetSettings) -> list[Row]:
    """All rows of a local file or Hub data set.

    Raises:
        DataError: it is missing, of an unknown kind, or damaged (with the line).
    """
    rows = _read_hub(settings) if is_on_hub(settings.source) else _read_file(Path(settings.source).expanduser())
    if not rows:
        raise DataError(f"{settings.source} holds no rows")
    return rows


def _read_file(path: Path) -> list[Row]:
    if path.is_dir():
        raise DataError(f"{path} is a folder; give a file that ends in {', '.join(LOCAL_SUFFIXES)}")
    readers = {".jsonl": _read_jsonl, ".json": _read_json, ".csv": _read_csv, ".parquet": _read_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"{path} is of an unknown kind; give a file that ends in {', '.join(LOCAL_SUFFIXES)}")
    try:
        return reader(path)
    except FileNotFoundError as error:
        raise DataError(
            f"there is no file {path}; give an existing file, a Hub id (owner/name) or {BUILTIN_DATASET}"
        ) from error
    except DataError:
        raise
    except (OSError, ValueError, csv.Error, RecursionError) as error:
        raise DataError(f"cannot read {path}: {' '.join(str(error).split())[:300]}") from error


def _read_jsonl(path: Path) -> list[Row]:
    rows: list[Row] = []
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DataError(f"{path} line {number} is not JSON: {error}") from error
            if not isinstance(row, dict):
                raise DataError(f"{path} line {number} is {type(row).__name__}, not an object of columns")
            rows.append(row)
    return rows


def _read_json(path: Path) -> list[Row]:
    data = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise DataError(f"{path} is not a list of objects; give one object a row, or a .jsonl file")
    return data


def _read_csv(path: Path) -> list[Row]:
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def _read_parquet(path: Path) -> list[Row]:
    from pyarrow import parquet

    rows: list[Row] = parquet.read_table(path).to_pylist()
    return rows


def _read_hub(settings: DatasetSettings) -> list[Row]:
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", settings.source):
        raise DataError(
            f"there is no file {settings.source}; give an existing file, a Hub id (owner/name) or {BUILTIN_DATASET}"
        )
    require_readable(settings.source, "dataset")
    import datasets

    try:
        loaded = datasets.load_dataset(settings.source, settings.config, split=settings.split)
    except Exception as error:  # the library raises many kinds, from HTTP errors to KeyError
        reason = " ".join(str(error).split())[:200]
        raise DataError(
            f"cannot load {settings.source} (config {settings.config}, split {settings.split}) from the Hub: {reason}; "
            f"check the id and the network, or use a local file or {BUILTIN_DATASET}"
        ) from error
    return list(loaded)


# From rows to samples


def require_columns(rows: Sequence[Row], settings: DatasetSettings) -> None:
    """Refuse a mapping that names a column which no row has.

    Raises:
        DataError: names the column wanted and those found.
    """
    found = list(dict.fromkeys(itertools.chain.from_iterable(rows[:1000])))
    for role, column in (("prompt", settings.columns.prompt), ("answer", settings.columns.answer)):
        if column is not None and column not in found:
            raise DataError(
                f"{settings.source} has no column {column!r} for the {role} "
                f"(columns found: {', '.join(map(str, found[:20]))}); set dataset.columns.{role} to one of them"
            )


def set_apart(rows: Sequence[Row], settings: DatasetSettings) -> tuple[list[Row], list[Row]]:
    """Split off the held-out rows; rows of one prompt stay on one side.

    Which prompts are held out follows from their text (lowest SHA-256 first), so that runs with different seeds are
    measured on the same rows and never train on another's test.

    Raises:
        DataError: nothing would be left to train on.
    """
    keys = [json.dumps(row.get(settings.columns.prompt), default=str) for row in rows]
    counts = Counter(keys)
    chosen: set[str] = set()
    room = settings.held_out
    for key in sorted(counts, key=lambda key: hashlib.sha256(key.encode()).digest()):
        if room <= 0:
            break
        chosen.add(key)
        room -= counts[key]
    held_out = [row for row, key in zip(rows, keys, strict=True) if key in chosen]
    train = [row for row, key in zip(rows, keys, strict=True) if key not in chosen]
    if not train:
        raise DataError(
            f"holding out {settings.held_out} of {len(rows)} rows leaves none to train on; "
            f"set dataset.held_out to {len(rows) // 5} or less"
        )
    return train, held_out[: settings.held_out]


def to_sample(row: Row, settings: DatasetSettings) -> Sample | None:
    """The row as chat messages and gold, or None when its prompt is missing or empty."""
    value = row.get(settings.columns.prompt)
    before, question = split_messages(value)
    if not question.strip():
        return None
    text = question if settings.prompt_template is None else settings.prompt_template.replace("{prompt}", question)
    system = settings.system_prompt
    if system is None:
        system = next((message["content"] for message in before if message["role"] == "system"), None)
    turns = [message for message in before if message["role"] != "system"]
    messages = ([{"role": "system", "content": system}] if system else []) + turns + [{"role": "user", "content": text}]
    columns = {str(key): cell for key, cell in row.items()}
    if settings.columns.answer is not None:
        columns["answer"] = row.get(settings.columns.answer)
    return Sample(tuple(messages), text, columns.get("answer"), columns)


def split_messages(value: Any) -> tuple[list[dict[str, str]], str]:
    """Earlier chat messages and the last user message of a prompt cell; plain text is one user message."""
    if isinstance(value, str):
        return [], value
    if isinstance(value, bool) or value is None:
        return [], ""
    if isinstance(value, int | float):
        return [], str(value)
    if isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value):
        messages = [
            {"role": str(item.get("role", "user")), "content": str(item.get("content") or "")} for item in value
        ]
        if messages and messages[-1]["role"] == "user":
            return messages[:-1], messages[-1]["content"]
    return [], ""
