"""Reads JSON as RFC 8259 has it, with no more than is sure to be read alike everywhere. Standard library only.

Refused, each with its reason: NaN and Infinity, a key twice in one object, a number beyond a double's range or
with a fraction that is lost in a double (1e-400 is no integer), an integer of more digits than Python reads, nesting
deeper than 400, and anything after the document.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

DEEPEST = 400
MOST_DIGITS = 4300
_SPACE = " \t\r\n"
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_FENCE = re.compile(r"(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>[A-Za-z0-9_+-]*)[ \t]*(?=\s)")
_START = re.compile(r"[\[{]")
# Prose may hold brackets that open no JSON; a text with more of them than this is not searched to its end.
_MOST_STARTS = 200


def read_json(text: str) -> Any:
    """The value of a text that is one JSON document, and nothing else but white space. Raises ValueError."""
    text = text.strip(_SPACE + "\ufeff")
    value, end = _read_at(text, 0)
    if end != len(text):
        raise ValueError(f"there is more after the JSON document: {text[end : end + 40]!r}")
    return value


def unfenced(text: str) -> str:
    """What a text holds that is one Markdown code block (of no language, or of JSON), or the text as it is."""
    stripped = text.strip()
    opening = _FENCE.match(stripped)
    if not opening or opening["language"].lower() not in ("", "json", "json5", "jsonc"):
        return text
    body = stripped[opening.end() :]
    mark = opening["mark"]
    return body[: -len(mark)] if body.endswith(mark) and mark not in body[: -len(mark)] else text


def last_json(text: str) -> tuple[Any, str] | None:
    """The last object or array that stands in prose, with its own text; None when there is none."""
    last = None
    for start, value, end in _documents(text):
        last = value, text[start:end]
    return last


def _documents(text: str) -> Iterator[tuple[int, Any, int]]:
    at = 0
    for _ in range(_MOST_STARTS):
        opening = _START.search(text, at)
        if opening is None:
            return
        at = opening.end()
        try:
            value, at = _read_at(text, opening.start())
        except ValueError:
            continue
        yield opening.start(), value, at


def _read_at(text: str, start: int) -> tuple[Any, int]:
    _refuse_depth(text, start)
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg.lower()} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    return value, end


def _refuse_depth(text: str, start: int) -> None:
    """The decoder would fail at a depth of its own choosing, and a validator later, so the limit is set here."""
    depth = 0
    for token in _STRUCTURE.finditer(text, start):
        if token[0] in "[{":
            depth += 1
            if depth > DEEPEST:
                raise ValueError(f"the JSON is nested deeper than {DEEPEST} levels")
        elif token[0] in "]}":
            depth -= 1
            if depth <= 0:
                return


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r:.60} stands twice in one object")
        found[key] = value
    return found


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MOST_DIGITS:
        raise ValueError(f"an integer of more than {MOST_DIGITS:,} digits")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits:.40} is beyond the range of a double")
    if value.is_integer() and not _is_whole(digits):
        raise ValueError(f"the number {digits:.40} has a fraction that a double cannot hold")
    return value


def _is_whole(digits: str) -> bool:
    try:
        exact = Decimal(digits)
    except InvalidOperation:  # an exponent of too many digits
        return False
    return exact == exact.to_integral_value()


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_float=_real, parse_constant=_no_constant
)
