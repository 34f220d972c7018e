"""A prompt cut into parts for showing: text, tokens that are no text, characters that do not show. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

Parts = list[list[str]]
"""[text, kind] each; kind is text, special or control."""
Spans = Sequence[tuple[int, int, str]]
"""Begin and end of each special token in the text, and the token; begin equals end for one that is put before it."""
HEAD_CHARACTERS, TAIL_CHARACTERS = 6_000, 3_000
_NAMES = {"\t": "\\t", "\r": "\\r"}
# Control characters but the line feed; bidi marks, joiners and other formatting; blanks other than the space; letters
# and selectors without a shape; private use, halves of pairs, line and paragraph separators.
_UNSEEN = re.compile(
    "["
    "\x00-\x09\x0b-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff"
    "]+"
)


def visible(text: str, spans: Spans) -> Parts:
    """The whole text in parts; what does not show is written as an escape, a line feed stays one."""
    parts: Parts = []
    at = 0
    for begin, end, token in spans:
        _add_text(parts, text[at:begin])
        parts.append([escaped(token), "special"])
        at = max(at, end)
    _add_text(parts, text[at:])
    return parts


def _add_text(parts: Parts, text: str) -> None:
    at = 0
    for found in _UNSEEN.finditer(text):
        if found.start() > at:
            parts.append([text[at : found.start()], "text"])
        parts.append([escaped(found[0]), "control"])
        at = found.end()
    if at < len(text):
        parts.append([text[at:], "text"])


def escaped(text: str) -> str:
    r"""The text with what does not show written as \u202e or \t."""
    return _UNSEEN.sub(lambda found: "".join(map(_escape, found[0])), text)


def _escape(character: str) -> str:
    code = ord(character)
    form = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return _NAMES.get(character, form)


def clipped(parts: Parts, head: int = HEAD_CHARACTERS, tail: int = TAIL_CHARACTERS) -> Parts:
    """The beginning and the end of long parts; what is left out between is told as a part of the kind control."""
    total = sum(len(text) for text, _ in parts)
    if total <= head + tail:
        return parts
    left = f"[… {total - head - tail:,} characters …]"
    backwards = [[text[::-1], kind] for text, kind in reversed(parts)]
    end = [[text[::-1], kind] for text, kind in reversed(_first(backwards, tail))]
    return [*_first(parts, head), [left, "control"], *end]


def _first(parts: Parts, count: int) -> Parts:
    found: Parts = []
    for text, kind in parts:
        if count <= 0:
            break
        found.append([text[:count], kind])
        count -= len(text)
    return found
