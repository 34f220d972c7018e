"""CSV as rows of text: each cell as it is written, so that 007, 1.10, None, N/A and true stay so; an empty cell is "".

A line that is not UTF-8 is read as Windows-1252, which spreadsheet programs write, and told. A row that is too short
has None for the cells that it lacks.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

from grpo_studio.data.csv_layout import CsvLayout, delimiter_name, find_layout, is_western
from grpo_studio.data.file_notes import CountedNote
from grpo_studio.data.rows import Row, RowStream
from grpo_studio.data.text_lines import LONGEST, TextFile
from grpo_studio.errors import DataError

LINES_LOOKED_AT = 200
TEXT_LOOKED_AT = 1 << 18


def open_csv(file: TextFile, preferred: str | None = None) -> RowStream:
    """The rows of a CSV file; `preferred` is a delimiter that is taken whenever the header holds it.

    Raises:
        DataError: its header cannot be used; while rows are read, a row is damaged (with its line).
    """
    csv.field_size_limit(LONGEST)
    layout = find_layout(_first_lines(file), file.name, preferred)
    if layout is None:
        return RowStream(iter(()))
    notes = list(layout.notes)
    return RowStream(_rows(file, layout, notes), layout.columns, notes, file.share)


def _first_lines(file: TextFile) -> list[str]:
    lines: list[str] = []
    held = 0
    for _, line in file.lines(lambda number, raw, error: raw.decode("cp1252", errors="replace")):
        lines.append(line)
        held += len(line)
        if len(lines) >= LINES_LOOKED_AT or held > TEXT_LOOKED_AT:
            break
    return lines


class _Lines:
    """The lines of a file as the CSV reader takes them; `record` holds those of the row that is being read."""

    def __init__(self, file: TextFile, notes: list[str]) -> None:
        self._file = file
        self._other = CountedNote(
            notes,
            lambda count, where: (
                f"{count} lines of {file.name} are not UTF-8 and are read as Windows-1252: {where}; if letters look "
                "wrong, save the file as UTF-8"
            ),
        )
        self._lines = file.lines(self._not_utf8)
        self.number = 0
        self.record: list[str] = []

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        self.number, line = next(self._lines)
        self.record.append(line)
        if "\0" in line:
            raise DataError(
                f"{self._file.name} line {self.number} holds NUL bytes: the file is damaged or binary; mend that line"
            )
        return line

    def close(self) -> None:
        """Close the file."""
        self._lines.close()

    def _not_utf8(self, number: int, raw: bytes, error: UnicodeDecodeError) -> str:
        try:
            text = raw.decode("cp1252")
            if not is_western(raw):
                raise error
        except UnicodeDecodeError:
            byte = f"byte {error.start + 1} of the line is 0x{raw[error.start]:02x}"
            raise DataError(
                f"{self._file.name} line {number} is neither UTF-8 nor Windows-1252 ({byte}); save the file as UTF-8"
            ) from None
        self._other.at(number)
        return text


def _rows(file: TextFile, layout: CsvLayout, notes: list[str]) -> Iterator[Row]:
    columns, width = layout.columns, len(layout.columns)
    short = CountedNote(
        notes, lambda count, where: f"{count} rows have fewer cells than the header has; they lack the last: {where}"
    )
    wide = CountedNote(
        notes, lambda count, where: f"{count} rows end in empty cells that have no column; those are left out: {where}"
    )
    bare = CountedNote(notes, lambda count, where: f"{count} rows without any value are left out: {where}")
    lines = _Lines(file, notes)
    try:
        for _ in range(layout.skipped):
            next(lines)
        reader = csv.reader(lines, delimiter=layout.delimiter, skipinitialspace=layout.skip_blanks, strict=True)
        for is_row, start, cells in _records(file, layout, lines, reader):
            if not is_row:
                continue
            if len(cells) > 1 and not any(cells):  # what spreadsheets write for rows that were once filled
                bare.at(start)
                continue
            if len(cells) > width:
                if any(cells[width:]):
                    raise _too_many(file, layout, start, len(cells))
                wide.at(start)
                cells = cells[:width]
            row: dict[str, str | None] = dict(zip(columns, cells, strict=False))
            if len(cells) < width:
                short.at(start)
                row.update(dict.fromkeys(columns[len(cells) :]))
            yield row
    finally:
        lines.close()


def _records(
    file: TextFile, layout: CsvLayout, lines: _Lines, reader: Iterator[list[str]]
) -> Iterator[tuple[bool, int, list[str]]]:
    """Whether it is a row (the first is the header), its first line, and its cells; blank lines are none."""
    is_row = False
    while True:
        lines.record.clear()
        start = lines.number + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise _broken(file, layout, lines, start, error) from error
        if cells is None:
            return
        if cells:
            yield is_row, start, cells
            is_row = True


def _too_many(file: TextFile, layout: CsvLayout, line: int, found: int) -> DataError:
    return DataError(
        f"{file.name} line {line} has {found} cells, the header has {len(layout.columns)}; "
        f"put a cell that holds {delimiter_name(layout.delimiter)} in double quotes"
    )


def _broken(file: TextFile, layout: CsvLayout, lines: _Lines, start: int, error: csv.Error) -> DataError:
    opened, column = _opening_quote(lines.record, layout)
    where = f"{file.name} line {start + opened}"
    if "expected after" in str(error):
        return DataError(
            f"{where}: text follows the closing quote (line {lines.number}) of a cell that opens at column {column}; "
            "write a quote inside a quoted cell twice"
        )
    if "unexpected end" in str(error) or "limit" in str(error):
        return DataError(f"{where}: the quote that opens at column {column} is never closed; close or remove it")
    return DataError(f"{where} is not CSV: {error}; mend or remove that line")


def _opening_quote(record: list[str], layout: CsvLayout) -> tuple[int, int]:
    """The line (from 0, in the record) and the column (from 1) where the cell opens that broke the record."""
    text = "".join(record)
    at = opened = 0
    while at < len(text):
        while layout.skip_blanks and text[at] == " ":
            at += 1
        if text[at] == '"':
            opened, end = at, text.find('"', at + 1)
            while end >= 0 and text[end + 1 : end + 2] == '"':
                end = text.find('"', end + 2)
            at = end + 1
            if end < 0 or text[at : at + 1] != layout.delimiter:
                break
        else:
            at = text.find(layout.delimiter, at)
            if at < 0:
                break
        at += 1
    line = 0
    while opened >= len(record[line]):
        opened -= len(record[line])
        line += 1
    return line, opened + 1
