"""A JSON file as rows: a list of objects, read in pieces; one list in an object; or one object after the other."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from grpo_studio.data.json_values import JsonValues, OddJson, kind_of_value, reason_of
from grpo_studio.data.jsonl_rows import jsonl_rows
from grpo_studio.data.rows import Row
from grpo_studio.data.text_lines import LONGEST, TextFile
from grpo_studio.errors import DataError
from grpo_studio.shown import shown

FIRST_OBJECT = 4 << 20
"""Characters within which the first of several objects ends; a longer one is taken for the only one."""
LARGEST_OBJECT = 100 << 20
"""Characters of an object that is read whole to find its list."""
_BLANKS = re.compile(r"[ \t\r\n]*")
_LIST_WANTED = "give a list of objects, one a row, or a .jsonl file (pandas writes one with to_json(orient='records'))"


def json_rows(file: TextFile, notes: list[str]) -> Iterator[Row]:
    """The rows of a JSON file.

    Raises:
        DataError: it is not JSON, with the line, or holds no single list of objects.
    """
    with closing(_Cursor(file, notes)) as cursor:
        first = cursor.peek()
        if first == "[":
            yield from _list_rows(cursor)
        elif first and first != "{":
            start = shown(cursor.ahead(), 60)
            raise DataError(f"{file.name} is not a list of objects: it starts {start}; {_LIST_WANTED}")
    if first == "{" and _is_jsonl(file):
        notes.append(f"{file.name} holds one object a line (JSON Lines) and is read so")
        yield from jsonl_rows(file, notes)
    elif first == "{" and holds_objects(file):
        yield from object_rows(file, notes)
    elif first == "{":
        yield from _rows_in_object(file, notes)


def line_rows(file: TextFile, notes: list[str]) -> Iterator[Row]:
    """The rows of a file of JSON Lines; one whose objects go over lines is read as well.

    Raises:
        DataError: as `jsonl_rows` and `object_rows`.
    """
    rows = jsonl_rows if _first_line(file)[0] or not holds_objects(file) else object_rows
    yield from rows(file, notes)


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

    def close(self) -> None:
        """Close the file."""
        self._pieces.close()

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

    def row(self, what: str, longest: int = LONGEST) -> dict[str, Any]:
        """The object that starts here; none longer is read.

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
                if self._may_be_cut(error, longest) and self._more():
                    continue
                self._count_lines(error.pos)
                raise self.not_json(f"{what}: {reason_of(error)}") from error
            except RecursionError as error:
                where = f"{self.file.name}: {what} (line {self.line})"
                raise DataError(f"cannot read {where} is nested too deeply; write the values flatter") from error
            except OddJson as error:
                raise self.not_json(f"{what}: {reason_of(error)}") from error
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
        raise self.not_json("it ends inside its list" if not found else f"a comma is missing before {found!r}")

    def _may_be_cut(self, error: json.JSONDecodeError, longest: int) -> bool:
        near = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - 12
        return near and len(self._text) - self._at < longest

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

    def not_json(self, reason: str) -> DataError:
        """What is wrong at this line."""
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
        if cursor.peek() == "]":
            raise cursor.not_json("a comma follows the last item of the list")
        yield cursor.row(f"item {number}")
        follows = cursor.after()
    if cursor.peek():
        rest = shown(cursor.ahead(), 40)
        raise DataError(f"{cursor.file.name} holds more after its list ends: {rest}; keep one list a file")


def _is_jsonl(file: TextFile) -> bool:
    """Whether the first line is a whole object and another line begins the next."""
    whole, then = _first_line(file)
    return whole and then.startswith("{")


def _first_line(file: TextFile) -> tuple[bool, str]:
    """Whether the first line that is not blank is JSON by itself, and what the next one is."""
    with closing(file.lines(lambda number, raw, error: raw.decode(errors="replace"))) as numbered:
        lines = (line for _, line in numbered if line.strip())
        try:
            json.loads(next(lines, "").strip("\ufeff"))
        except (ValueError, RecursionError):
            return False, ""
        return True, next(lines, "").lstrip()


def holds_objects(file: TextFile) -> bool:
    """Whether the file is one object after the other, each over lines as it pleases, without a list around them."""
    with closing(_Cursor(file, [])) as cursor:
        try:
            if cursor.peek() != "{":
                return False
            cursor.row("item 1", FIRST_OBJECT)
            return cursor.peek() == "{"
        except DataError:
            return False


def object_rows(file: TextFile, notes: list[str]) -> Iterator[Row]:
    """The rows of a file that `holds_objects`.

    Raises:
        DataError: it is not JSON, with the line.
    """
    notes.append(f"{file.name} holds one object after the other and is read so")
    with closing(_Cursor(file, notes)) as cursor:
        for number in itertools.count(1):
            if not cursor.peek():
                return
            yield cursor.row(f"item {number}")


def _rows_in_object(file: TextFile, notes: list[str]) -> Iterator[Row]:
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
    keys = f"keys: {shown(', '.join(found), 120)}" if found else "without keys"
    if len(lists) > 1:
        raise DataError(f"{file.name} holds several lists of rows ({shown(', '.join(lists))}); give each a file")
    if not lists:
        raise DataError(f"{file.name} is one object ({keys}), not a list of objects; {_LIST_WANTED}")
    notes.append(f"the rows of {file.name} are those of its list {shown(lists[0], 60)!r}; other keys are left out")
    for number, row in enumerate(found[lists[0]], start=1):
        yield values.row(row, number)


def _objects(items: list[Any]) -> bool:
    return all(isinstance(item, dict) for item in items)
