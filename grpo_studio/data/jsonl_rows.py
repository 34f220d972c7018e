"""JSON Lines as rows: one object a line, read only as they are asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

from grpo_studio.data.json_values import JsonValues, kind_of_value, reason_of
from grpo_studio.data.rows import Row
from grpo_studio.data.text_lines import TextFile
from grpo_studio.errors import DataError
from grpo_studio.shown import shown

_BLANKS = re.compile(r"[ \t\r\n\ufeff]*")  # a mark stands inside a file when marked files were joined


def jsonl_rows(file: TextFile, notes: list[str]) -> Iterator[Row]:
    """The rows of a file of JSON Lines; blank lines are none.

    Raises:
        DataError: a line is not JSON, holds no object or is not UTF-8, with its number.
    """
    values = JsonValues(notes)

    def not_utf8(number: int, raw: bytes, error: UnicodeDecodeError) -> str:
        raise DataError(
            f"{file.name} line {number} is not UTF-8 (byte {error.start + 1} of the line is 0x{raw[error.start]:02x}); "
            "save the file as UTF-8"
        ) from error

    with closing(file.lines(not_utf8)) as lines:  # an error that is kept would keep the file open
        for number, line in lines:
            line = line.rstrip("\r\n")  # so that an error at its end is not one of the next line
            start = _BLANKS.match(line).end()  # type: ignore[union-attr]  # it matches nothing as well
            if start == len(line):
                continue
            try:
                row, end = values.value(line, start)
                rest = _BLANKS.match(line, end).end()  # type: ignore[union-attr]
                if rest < len(line) and isinstance(row, dict):
                    raise ValueError(f"more text follows the object at column {rest + 1}")
                if isinstance(row, dict):
                    row = values.row(row, number, line, start, end)
            except (ValueError, RecursionError) as error:
                raise _not_json(file, number, line, error) from error
            if not isinstance(row, dict):
                more = next((True for _, text in lines if text.strip()), False)
                raise _no_object(file, number, line, row, more)
            yield row


def _not_json(file: TextFile, number: int, line: str, error: Exception) -> DataError:
    text = line.strip()
    if "\0" in line:
        return DataError(f"{file.name} line {number} holds NUL bytes: the file is damaged or binary; mend that line")
    fix = "mend or remove that line"
    if text.startswith("{'"):
        fix = "it is a mapping as Python prints it: write each row with json.dumps"
    elif text.endswith("},"):
        fix = "leave out the comma at the end of each line, or write one list into a .json file"
    elif number == 1 and text == "{":
        fix = "write each object in one line, or all of them as one list in a .json file"
    elif number == 1 and text.startswith("["):
        fix = "one list of all objects goes into a .json file: rename it"
    elif number == 1 and not text.startswith("{"):
        fix = "write one JSON object a line; a table goes into a .csv file"
    start = shown(text, 60)
    return DataError(f"{file.name} line {number} is not JSON: {reason_of(error)} (it starts {start}); {fix}")


def _no_object(file: TextFile, number: int, line: str, value: object, more: bool) -> DataError:
    rows = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
    if number == 1 and rows and not more:
        return DataError(f"{file.name} is one JSON list, not one object a line; rename it to end in .json")
    what = f"{kind_of_value(value)}, not an object of columns ({shown(line.strip(), 60)})"
    example = '{"prompt": [...]} around a list of messages' if rows else '{"prompt": "1 + 1"}'
    return DataError(f"{file.name} line {number} is {what}; write one object a line, such as {example}")
