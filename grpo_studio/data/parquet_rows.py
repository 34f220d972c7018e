"""Parquet as rows, a batch at a time: numbers, texts, lists and mappings as they are.

What JSON cannot say is plain text as it would be printed: decimals, dates, times and durations; of numbers also NaN and
Infinity, for they are no numbers to compare with. A float of 32 bits is the shortest number that is stored so (0.1,
not 0.10000000149). Binary values are their UTF-8 text; those that are no text, such as pictures, are left out (None).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from grpo_studio.data.file_notes import CountedNote, read_errors, shown_path
from grpo_studio.data.rows import Row, RowStream
from grpo_studio.errors import DataError
from grpo_studio.shown import shown

BATCH = 1024
FIRST_BATCH = 64
"""So that a look at the first rows does not decode a thousand."""
Convert = Callable[[Any], Any]


def open_parquet(path: Path) -> RowStream:
    """The rows of a Parquet file.

    Raises:
        DataError: it is no whole Parquet file, or names a column twice; while rows are read, a page is damaged.
    """
    from pyarrow import parquet

    name = shown_path(path)
    if path.stat().st_size == 0:
        raise DataError(f"{name} is empty (0 bytes); copy or write it again")
    try:
        with parquet.ParquetFile(path) as file:
            schema, total = file.schema_arrow, file.metadata.num_rows
    except (OSError, ValueError) as error:
        reason = shown(str(error), 200)
        raise DataError(f"cannot read {name}: {reason}; it is cut off or no Parquet file: copy it again") from error
    names = schema.names
    twice = next((column for column in names if names.count(column) > 1), None)
    if twice is not None:
        raise DataError(f"{name} has two columns named {shown(twice, 60)!r}; rename one of them")
    done = [0]
    odd = _NoText(name)
    rows = _rows(path, schema, done, odd)
    return RowStream(rows, tuple(names), odd.notes, lambda: done[0] / total if total else 1.0, odd.first_rows)


class _NoText:
    """Binary values that are no text: where they stand is told, and nothing stands for them."""

    def __init__(self, file: str) -> None:
        self.notes: list[str] = []
        self.first_rows: dict[str, int] = {}
        self.row = 0
        self._file = file
        self._counted: dict[str, CountedNote] = {}
        self._last: dict[str, int] = {}

    def text(self, column: str, value: bytes | None) -> str | None:
        """The text of a binary value in the present row."""
        if value is None:
            return None
        try:
            return value.decode()
        except UnicodeDecodeError:
            self._at(column)
            return None

    def _at(self, column: str) -> None:
        if self._last.get(column) == self.row:
            return
        self._last[column] = self.row
        if column not in self._counted:
            self.first_rows[column] = self.row
            self._counted[column] = CountedNote(self.notes, partial(self._note, column), unit="row")
        self._counted[column].at(self.row)

    def _note(self, column: str, count: int, where: str) -> str:
        what = f"{shown(column, 60)!r} of {self._file} holds binary data that is no text"
        return f"{what} in {count:,} rows, which is left out: {where}"


def _rows(path: Path, schema: Any, done: list[int], odd: _NoText) -> Iterator[Row]:
    from pyarrow import parquet

    name = shown_path(path)
    readers = [_column_reader(field, odd) for field in schema]
    with read_errors(path), parquet.ParquetFile(path, buffer_size=1 << 20) as file:
        for batch in _batches(file):
            columns = []
            for field, read, column in zip(schema, readers, batch.columns, strict=True):
                try:
                    columns.append(read(column, done[0] + 1))
                except (ValueError, OverflowError, NotImplementedError) as error:
                    raise DataError(
                        f"{name}: column {shown(field.name, 60)!r} ({shown(str(field.type), 60)}) cannot be read: "
                        f"{shown(str(error), 120)}; write it as text or leave it out"
                    ) from error
            for values in zip(*columns, strict=True):
                done[0] += 1
                yield dict(zip(schema.names, values, strict=True))


def _batches(file: Any) -> Iterator[Any]:
    for batch in file.iter_batches(batch_size=BATCH, use_threads=False):
        yield batch.slice(0, FIRST_BATCH)
        for start in range(FIRST_BATCH, batch.num_rows, BATCH):
            yield batch.slice(start, BATCH)


def _column_reader(field: Any, odd: _NoText) -> Callable[[Any, int], list[Any]]:
    """How a column is read from its first row's number on: cast to text where Python's values would lose digits, then
    made plain.
    """
    import pyarrow

    kind = field.type
    stored = kind.storage_type if isinstance(kind, pyarrow.BaseExtensionType) and not _is_uuid(kind) else kind
    printed, convert = _printed(stored), _converter(stored, field.name, odd)

    def read(column: Any, first: int) -> list[Any]:
        column = column if stored is kind else column.storage
        values: list[Any] = (column if printed == stored else column.cast(printed)).to_pylist()
        if convert is None:
            return values
        plain = []
        for number, value in enumerate(values, start=first):
            odd.row = number
            plain.append(convert(value))
        return plain

    return read


def _is_uuid(kind: Any) -> bool:
    return str(getattr(kind, "extension_name", "")) == "arrow.uuid"


def _printed(kind: Any) -> Any:
    """The type with text in place of dates, times and short floats, at any depth of lists and structs.

    Arrow prints what Python's own types cannot hold: nanoseconds, years past 9999. (It cannot convert inside maps.)
    """
    import pyarrow
    from pyarrow import types

    if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind) or types.is_float32(kind):
        return pyarrow.string()
    if types.is_struct(kind):
        return pyarrow.struct([field.with_type(_printed(field.type)) for field in kind])
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        return pyarrow.list_(kind.value_field.with_type(_printed(kind.value_type)))
    if types.is_large_list(kind):
        return pyarrow.large_list(kind.value_field.with_type(_printed(kind.value_type)))
    if types.is_dictionary(kind):
        return _printed(kind.value_type)
    return kind


def _converter(kind: Any, column: str, odd: _NoText) -> Convert | None:
    """What makes a value of this type, in a column or a field of one, plain; None where it is already."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _converter(kind.value_type, column, odd)
    if types.is_struct(kind):
        return _of_struct({field.name: _converter(field.type, f"{column}.{field.name}", odd) for field in kind})
    if types.is_map(kind):
        return _of_map(_converter(kind.key_type, column, odd), _converter(kind.item_type, column, odd))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = _converter(kind.value_type, column, odd)
        return None if inner is None else lambda value: value if value is None else [inner(item) for item in value]
    return _of_scalar(kind, column, odd)


def _of_scalar(kind: Any, column: str, odd: _NoText) -> Convert | None:
    from pyarrow import types

    if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind):
        return lambda value: None if value is None else _time_text(str(value))
    if types.is_decimal(kind):
        return lambda value: None if value is None else f"{value:f}"
    if types.is_float32(kind):
        return lambda value: None if value is None else _finite(float(value))
    if types.is_floating(kind):
        return _finite
    binary = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view)
    if any(is_kind(kind) for is_kind in binary):
        return partial(odd.text, column)
    plain = (types.is_integer, types.is_boolean, types.is_string, types.is_large_string, types.is_null)
    if any(is_kind(kind) for is_kind in plain):
        return None
    return lambda value: None if value is None else str(value)


def _of_struct(fields: dict[str, Convert | None]) -> Convert | None:
    odd = [(name, convert) for name, convert in fields.items() if convert is not None]
    if not odd:
        return None
    return lambda value: value if value is None else value | {name: convert(value[name]) for name, convert in odd}


def _of_map(of_key: Convert | None, of_item: Convert | None) -> Convert:
    def convert(value: Any) -> Any:
        if value is None:
            return None
        pairs = [(of_key(key) if of_key else key, of_item(item) if of_item else item) for key, item in value]
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a map holds a key twice")
        return found

    return convert


def _finite(value: float | None) -> float | str | None:
    """A float, or the text of one that is no number, in the words of JSON."""
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _time_text(text: str) -> str:
    """A date or time without a fraction of zeros: 12:00:00.000000Z is 12:00:00Z."""
    if text.startswith("<"):  # what Arrow prints for a time that it cannot
        raise ValueError(text.strip("<>"))
    before, point, after = text.partition(".")
    if not point:
        return text
    digits = after[: len(after) - len(after.lstrip("0123456789"))]
    kept = digits.rstrip("0")
    return f"{before}{'.' if kept else ''}{kept}{after[len(digits) :]}"
