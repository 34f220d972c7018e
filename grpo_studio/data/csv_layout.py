"""How a CSV file is laid out, from its first lines: delimiter, header, blanks before quotes. Pure."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

from grpo_studio.data.column_names import Role, standing
from grpo_studio.errors import DataError
from grpo_studio.shown import shown

DELIMITERS = (",", ";", "\t", "|")
DELIMITER_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_HIGH = re.compile(rb"[\x80-\xff]+")
FEW_HIGH = 6
"""Bytes past ASCII of a line from which on they show an alphabet."""
LATEST_HEADER = 10
ROLES: tuple[Role, ...] = ("prompt", "answer")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?\s*")


@dataclass(frozen=True)
class CsvLayout:
    """What is needed to read the rows.

    Args:
        delimiter: what stands between two cells.
        columns: names from the header, each once.
        skipped: lines before the header.
        skip_blanks: whether blanks between a delimiter and a quote are no part of the cell.
        notes: what was changed in the header or may be wrong with it.
    """

    delimiter: str
    columns: tuple[str, ...]
    skipped: int
    skip_blanks: bool
    notes: tuple[str, ...]


def find_layout(lines: Sequence[str], name: str, preferred: str | None = None) -> CsvLayout | None:
    """The layout of a file that begins with these lines; None when they are all blank.

    Raises:
        DataError: the header is empty, names a column twice, or is that of another kind of file.
    """
    told = _SEPARATOR_LINE.fullmatch(lines[0]) if lines else None
    skipped = 1 if told else 0
    while skipped < len(lines) and not lines[skipped].strip():
        skipped += 1
    lines = lines[skipped:]
    if not lines:
        return None
    if lines[0].lstrip().startswith(("{", "[{")):
        raise DataError(f"{name} holds JSON, not CSV; rename it to .jsonl (one object a line) or .json (one list)")
    delimiter = told[1] if told else _delimiter(lines, preferred)
    skip_blanks = _blanks_before_quotes("".join(lines), delimiter)
    header = next(csv.reader(lines, delimiter=delimiter, skipinitialspace=skip_blanks))
    columns, notes = _named(header, name)
    _refuse_later_header(lines, columns, skipped, name)
    if skip_blanks:
        notes.append(f"blanks before quoted cells of {name} are left out")
    if delimiter != "," and preferred is None and len(columns) > 1:
        notes.append(f"the cells of {name} are parted by {delimiter_name(delimiter)}")
    return CsvLayout(delimiter, columns, skipped, skip_blanks, tuple(notes))


def is_western(raw: bytes) -> bool:
    """Whether bytes that are not UTF-8 may be Windows-1252: there, letters past ASCII stand alone or by twos.

    Long runs of them are of another alphabet (Windows-1251, Shift JIS, GBK) and would be read as nonsense.
    """
    runs = _HIGH.findall(raw)
    total = sum(map(len, runs))
    return total < FEW_HIGH or total <= 2 * len(runs) or len(set(b"".join(runs))) < 4


def delimiter_name(delimiter: str) -> str:
    """A delimiter in words."""
    return DELIMITER_NAMES.get(delimiter) or ascii(delimiter)


def _refuse_later_header(lines: Sequence[str], columns: Sequence[str], skipped: int, name: str) -> None:
    """Raises DataError when a title or a comment stands before the header: a later line names question and answer."""
    if any(standing(column, "prompt") is not None for column in columns):
        return
    for delimiter in DELIMITERS:
        reader = csv.reader(lines[:LATEST_HEADER], delimiter=delimiter)
        try:
            for cells in reader:
                if all(any(standing(cell, role) is not None for cell in cells) for role in ROLES):
                    raise DataError(
                        f"the header of {name} seems to be line {skipped + reader.line_num} "
                        f"({shown(', '.join(cells), 60)}), not its first; remove the lines before it"
                    )
        except csv.Error:
            continue


def _delimiter(lines: Sequence[str], preferred: str | None) -> str:
    """The delimiter that parts the header and then most rows into as many cells as the header has."""
    if preferred and preferred in lines[0]:
        return preferred
    fits: list[tuple[bool, float, int, str]] = []
    for delimiter in DELIMITERS:
        records = _records(lines, delimiter)
        width = len(records[0]) if records else 1
        same = sum(len(cells) == width for cells in records) / max(1, len(records))
        fits.append((width > 1, same, width, delimiter))
    return max(fits, key=lambda fit: fit[:3])[3]


def _blanks_before_quotes(text: str, delimiter: str) -> bool:
    """Whether some cell begins with blanks and then a quote; a quoted cell may hold both."""
    mark = re.escape(delimiter)
    cell = re.compile(rf'(?P<odd> +")|(?:"[^"]*(?:""[^"]*)*(?:"|$))?[^{mark}\r\n]*(?:{mark}|[\r\n]+|$)')
    return any(found["odd"] for found in cell.finditer(text))


def _records(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        records = [cells for cells in csv.reader(lines, delimiter=delimiter) if cells]
    except csv.Error:
        return []
    return records[:-1] if len(records) > 2 else records  # the last may be cut off


def _named(header: Sequence[str], name: str) -> tuple[tuple[str, ...], list[str]]:
    stripped = [cell.strip() for cell in header]
    if not any(stripped):
        raise DataError(f"the header of {name} (its first line) is empty; name the columns there")
    twice = next((cell for cell in stripped if cell and stripped.count(cell) > 1), None)
    if twice is not None:
        places = " and ".join(str(place) for place, cell in enumerate(stripped, start=1) if cell == twice)
        raise DataError(f"the header of {name} names {shown(twice, 60)!r} twice (columns {places}); rename one of them")
    notes: list[str] = []
    spaced = [shown(repr(cell), 60) for cell, plain in zip(header, stripped, strict=True) if plain and cell != plain]
    if spaced:
        notes.append(f"blanks around column names of {name} are left out: {', '.join(spaced[:5])}")
    columns: list[str] = []
    for place, cell in enumerate(stripped, start=1):
        column = cell or f"column_{place}"
        while not cell and column in (*stripped, *columns):
            column += "_"
        columns.append(column)
    unnamed = [column for column, cell in zip(columns, stripped, strict=True) if not cell]
    if unnamed:
        notes.append(f"the header of {name} leaves columns without a name; they are {', '.join(unnamed[:5])}")
    if all(_NUMBER.fullmatch(cell) for cell in stripped):
        cells = shown(", ".join(stripped), 60)
        notes.append(f"the first line of {name} is taken as the header but holds only numbers ({cells}): is it a row?")
    return tuple(columns), notes
