"""Local files as rows: JSONL, JSON, CSV, Parquet."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from grpo_studio.config import BUILTIN_DATASET
from grpo_studio.data.rows import Row, RowStream
from grpo_studio.data.sources import LOCAL_SUFFIXES
from grpo_studio.errors import DataError


def open_file(path: Path) -> RowStream:
    """The rows of a local file.

    Raises:
        DataError: it is missing, a folder or of an unknown kind; while rows are read, that it is damaged (the line).
    """
    return RowStream(iter(_read_file(path)))


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
