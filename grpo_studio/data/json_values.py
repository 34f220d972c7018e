r"""JSON as values that do not lie: a number whose form Python would change arrives as the text that was written.

At the top level of a row 1.10, 1E5, -0, 12345678901234567890.0, NaN and whole numbers past 4,300 digits are that text;
inside lists and objects they are numbers (whole numbers past 4,300 digits: text, as Python cannot print them). A key
that stands twice is an error, for only one of its values could be kept. Half a surrogate pair ("\ud800") is no
character and can be written to no database: U+FFFD stands for it.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from grpo_studio.data.file_notes import CountedNote
from grpo_studio.shown import shown

DEEPEST = 100
MOST_DIGITS = 4300
"""Python reads and prints no whole number of more (sys.int_info.default_max_str_digits)."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class OddJson(ValueError):
    """A text that is JSON by its grammar but cannot be read faithfully."""


class _Written:
    """A number of which Python would print another text."""

    __slots__ = ("text", "value")

    def __init__(self, text: str, value: float | str) -> None:
        self.text, self.value = text, value


class JsonValues:
    """Reads rows from JSON text and tells in notes what it had to change."""

    def __init__(self, notes: list[str], unit: str = "line") -> None:
        self._decoder = json.JSONDecoder(
            object_pairs_hook=_object, parse_float=self._float, parse_int=self._int, parse_constant=self._constant
        )
        self._odd_numbers = False
        self._kept = CountedNote(
            notes,
            lambda count, where: (
                f"numbers of {count} rows keep the form in which they were written, as text, for they would be printed "
                f"in another (such as 1.10, 1E5, NaN): {where}"
            ),
            unit,
        )
        self._halves = CountedNote(
            notes,
            lambda count, where: f"{count} rows hold half a surrogate pair; U+FFFD stands for it: {where}",
            unit,
        )

    def value(self, text: str, at: int = 0) -> tuple[Any, int]:
        """The value that starts at a place in a text and where it ends; its rows still have to go through `row`.

        Raises:
            json.JSONDecodeError: it is not JSON. OddJson: a key stands twice. RecursionError: it is nested too deeply.
        """
        return self._decoder.raw_decode(text, at)

    def row(
        self, row: dict[str, Any], number: int, text: str | None = None, start: int = 0, end: int = sys.maxsize
    ) -> dict[str, Any]:
        """A row that `value` read, as plain values; `text[start:end]`, its JSON, saves looking into each of them.

        Raises:
            OddJson: it is nested too deeply for what comes after.
        """
        if text is None or self._odd_numbers:
            row, kept = _plain_numbers(row)
            self._odd_numbers = False
            if kept:
                self._kept.at(number)
        if text is None or _SURROGATE.search(text, start, end):
            row, halves = _whole_text(row)
            if halves:
                self._halves.at(number)
        many = text is None or text.count("[", start, end) + text.count("{", start, end) > DEEPEST
        if many and _depth(row) > DEEPEST:
            raise OddJson(f"it is nested too deeply (more than {DEEPEST} levels)")
        return row

    def _float(self, text: str) -> float | _Written:
        value = float(text)
        if repr(value) == text:
            return value
        self._odd_numbers = True
        return _Written(text, value)

    def _int(self, text: str) -> int | _Written:
        if text == "-0" or len(text) > MOST_DIGITS:
            self._odd_numbers = True
            return _Written(text, 0 if text == "-0" else text)
        return int(text)

    def _constant(self, text: str) -> _Written:
        self._odd_numbers = True
        return _Written(text, float(text))


def reason_of(error: Exception) -> str:
    """Why a text is not JSON, in a few words."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[:1].lower()}{error.msg[1:].removesuffix(' at')} at column {error.colno}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def kind_of_value(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    words = ((str, "a text"), (list, "a list"), (dict, "an object"))
    return next((word for kind, word in words if isinstance(value, kind)), "a number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise OddJson(f'the key "{shown(twice, 60)}" stands twice in one object')
    return found


def _plain_numbers(row: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    kept = False
    plain: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, _Written):
            plain[name], kept = value.text, True
        else:
            plain[name] = _numbers(value)
    return plain, kept


def _numbers(value: Any) -> Any:
    if isinstance(value, _Written):
        return value.value
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    if isinstance(value, dict):
        return {name: _numbers(item) for name, item in value.items()}
    return value


def _whole_text(value: Any) -> tuple[Any, bool]:
    """The value with U+FFFD for each half of a surrogate pair, and whether there was one."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in value), True
        return value, False
    if isinstance(value, list):
        items = [_whole_text(item) for item in value]
        return [item for item, _ in items], any(odd for _, odd in items)
    if isinstance(value, dict):
        names = [_whole_text(name) for name in value]
        items = [_whole_text(item) for item in value.values()]
        whole = {name: item for (name, _), (item, _) in zip(names, items, strict=True)}
        return whole, any(odd for _, odd in [*names, *items])
    return value, False


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        inner = [item for item in level if isinstance(item, list | dict)]
        level = [child for item in inner for child in (item.values() if isinstance(item, dict) else item)]
    return depth
