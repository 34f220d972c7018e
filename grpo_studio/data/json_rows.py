"""A JSON file as rows: a list of objects, read in pieces; one list in an object; or JSON Lines by the wrong name."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from grpo_studio.data.json_values import JsonValues, OddJson, kind_of_value, reason_of
from grpo_studio.data.jsonl_rows import jsonl_rows
from grpo_studio.data.rows import Row
from grpo_studio.data.shown import shown
from grpo_studio.data.text_lines import LONGEST, TextFile
from grpo_studio.errors import DataError

LARGEST_OBJECT = 100 << 20
"""Characters of an object that is read whole to find its list."""
_BLANKS = re.compile(r"[ \t\r\n]*")
_LIST_WANTED = "give a list of objects, one a row, or a .jsonl file (pandas writes one with to_json(orient='records'))"


def json_rows(file: TextFile, notes: list[str]) -> Iterator[Row]:
    """The rows of a JSON file.

    Raises:
        DataError: it is not JSON, with the line, or holds no single list of objects.
    """
    cursor = _Cursor(file, notes)
    first = cursor.peek()
    if first == "[":
        yield from _list_rows(cursor)
    elif first == "{" and _is_jsonl(file):
        notes.append(f"{file.name} holds one object a line (JSON Lines) and is read so")
        yield from jsonl_rows(file, notes)
    elif first == "{":
        yield from _object_rows(file, notes)
    elif first:
        raise DataError(f"{file.name} is not a list of objects: it starts {shown(cursor.ahead(), 60)}; {_LIST_WANTED}")


class _Cursor:
    """A place in a JSON text of which only the part from there on is held."""

    def __init__(self, file: TextFile, notes: list[str]) -> None:
        self.file = file
        self.values = JsonValues(notes)
        self.line = 1
        self._pieces = file.pieces()
        self._text = ""
        self._at = 0
        self._counted = 0

    def peek(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]  # it matches nothing too
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def skip(self) -> None:
        """Pass one character."""
        self._at += 1

    def ahead(self) -> str:
        """What comes next, as far as it is held."""
        return self._text[self._at : self._at + 100]

    def row(self, what: str) -> dict[str, Any]:
        """The object that starts here.

        Raises:
            DataError: it is not JSON (the line), or something else than an object.
        """
        while True:
            self._count_lines(self._at)
            try:
                value, end = self.values.value(self._text, self._at)
                if not isinstance(value, dict):
                    raise DataError(
                        f"{self.file.name} is not a list of objects: {what} (line {self.line}) is "
                        f"{kind_of_value(value)}; {_LIST_WANTED}"
                    )
                row = self.values.row(value, self.line, self._text, self._at, end)
            except json.JSONDecodeError as error:
                if self._may_be_cut(error) and self._more():
                    continue
                self._count_lines(error.pos)
                raise self._not_json(f"{what}: {reason_of(error)}") from error
            except RecursionError as error:
                where = f"{self.file.name}: {what} (line {self.line})"
                raise DataError(f"cannot read {where} is nested too deeply; write the values flatter") from error
            except OddJson as error:
                raise self._not_json(f"{what}: {reason_of(error)}") from error
            self._at = end
            return row

    def after(self) -> bool:
        """Pass the comma after an item or the end of the list; whether another item follows."""
        found = self.peek()
        self._count_lines(self._at)
        self.skip()
        if found == ",":
            return True
        if found == "]":
            return False
        raise self._not_json("it ends inside its list" if not found else f"a comma is missing before {found!r}")

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        near = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - 12
        return near and len(self._text) - self._at < LONGEST

    def _more(self) -> bool:
        """Hold at least twice as much, so that a long item is not tried at each of its pieces."""
        self._count_lines(self._at)
        parts = [self._text[self._at :]]
        self._at = self._counted = 0
        wanted = 2 * len(parts[0])
        held = len(parts[0])
        for piece in self._pieces:
            parts.append(piece)
            held += len(piece)
            if held >= wanted:
                break
        self._text = "".join(parts)
        return len(parts) > 1

    def _count_lines(self, end: int) -> None:
        self.line += self._text.count("\n", self._counted, end)
        self._counted = max(end, self._counted)

    def _not_json(self, reason: str) -> DataError:
        return DataError(
            f"{self.file.name} line {self.line} is not JSON: {reason}; mend that place or write JSON Lines"
        )


def _list_rows(cursor: _Cursor) -> Iterator[Row]:
    cursor.skip()
    follows = cursor.peek() != "]"
    if not follows:
        cursor.skip()
    for number in itertools.count(1):
        if not follows:
            break
        cursor.peek()
        yield cursor.row(f"item {number}")
        follows = cursor.after()
    if cursor.peek():
        rest = shown(cursor.ahead(), 40)
        raise DataError(f"{cursor.file.name} holds more after its list ends: {rest}; keep one list a file")


def _is_jsonl(file: TextFile) -> bool:
    """Whether the first line is a whole object and another line begins the next."""
    lines = (line for _, line in file.lines(lambda number, raw, error: raw.decode(errors="replace")) if line.strip())
    first = next(lines, "")
    try:
        whole = isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False
    return whole and next(lines, "").lstrip().startswith("{")


def _object_rows(file: TextFile, notes: list[str]) -> Iterator[Row]:
    parts: list[str] = []
    for piece in file.pieces():
        parts.append(piece)
        if len(parts) * len(parts[0]) > LARGEST_OBJECT:
            raise DataError(f"{file.name} is one object of more than {LARGEST_OBJECT >> 20} MiB; {_LIST_WANTED}")
    text = "".join(parts)
    values = JsonValues(notes, unit="row")
    start = _BLANKS.match(text).end()  # type: ignore[union-attr]  # it matches nothing as well
    try:
        found, end = values.value(text, start)
        end = _BLANKS.match(text, end).end()  # type: ignore[union-attr]
        if end < len(text):
            raise json.JSONDecodeError("More text follows the first object", text, end)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{file.name} line {error.lineno} is not JSON: {reason_of(error)}; mend that place or write JSON Lines"
        ) from error
    except (OddJson, RecursionError) as error:
        raise DataError(f"cannot read {file.name}: {reason_of(error)}; {_LIST_WANTED}") from error
    lists = [name for name, value in found.items() if isinstance(value, list) and value and _objects(value)]
    keys = shown(", ".join(found), 120)
    if len(lists) > 1:
        raise DataError(f"{file.name} holds several lists of rows ({shown(', '.join(lists))}); give each a file")
    if not lists:
        raise DataError(f"{file.name} is one object (keys: {keys}), not a list of objects; {_LIST_WANTED}")
    notes.append(f"the rows of {file.name} are those of its list {shown(lists[0], 60)!r}; other keys are left out")
    for number, row in enumerate(found[lists[0]], start=1):
        yield values.row(row, number)


def _objects(items: list[Any]) -> bool:
    return all(isinstance(item, dict) for item in items)
