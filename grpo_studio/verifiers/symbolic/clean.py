"""One spelling for an answer's text, before it is read or compared as text. Linear in its length."""

from __future__ import annotations

import re

from grpo_studio.verifiers.symbolic import words

_DELIMITERS = re.compile(r"(?<!\\)(?:\\[()\[\]]|\$+|\\!)")
_DIGIT_GAPS = re.compile(r"(?<=\d)(?:\{\s*,\s*\}|,\\!|\\(?= ))\s*(?=\d{3})")  # '14{, }916', '11,\\! 111'
_ESCAPED_TWICE = re.compile(r"\\{2,}(?=[A-Za-z])")
_RUN_ON = re.compile(r"\\q?quad(?=[A-Za-z])(?!quad|q)")
_DEGREES = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ)|\^\s*\{\s*\\degree\s*\}")
_WRAPPED = re.compile(r"\s*\\(?:text|textbf|textrm|textit|mathrm|mathbf|mbox|boxed|fbox|underline|displaystyle)\s*\{")
_BRACES = re.compile(r"\\.|[{}]", re.DOTALL)
_SPACE_COMMAND = re.compile(r"\\[,;: ]$")
_EXCLAIMED = re.compile(r"[A-Za-z]{3}!+$")
_NOON = re.compile(r"(?<=[\d\s{])([ap])\.\s?m\b\.?", re.IGNORECASE)
_CURRENCY = re.compile(r"(?<![\\$])\$(?=\s?\.?\d)")
_TEXT_COMMAND = re.compile(r"\\(?:text|textbf|textrm|textit|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_FILLER = re.compile(r"\\(?:left|right)(?![A-Za-z])\.?|\\[,;:! ]|\\(?:quad|qquad|displaystyle)(?![A-Za-z])|~")
_GAP = re.compile(r"(?<![A-Za-z0-9])\s+|\s+(?![A-Za-z0-9])")
_COLOURED = re.compile(r"\\(?:textcolor|color|colorbox)\s*\{[^{}]*\}")
_DOTS = re.compile(r"\\[lc]?dots[bcimo]?(?![A-Za-z])")
_GOES_ON = re.compile(r",\s*\.{2,}\s*$")
_ALIGNED = re.compile(
    r"\\begin\s*\{(aligned|align|alignat|gathered|gather|equation|split|multline)(\*?)\}"
    r"((?:(?!\\begin).)*?)\\end\s*\{\1\2\}",
    re.DOTALL,
)
_ROW_END = re.compile(r"\\\\(?:\[[^\]]*\])?")
_NO_CONTENT = re.compile(r"(?<!\\)&|\\(?:nonumber|notag)(?![A-Za-z])|\\tag\*?\s*\{[^{}]*\}")
_CONTINUES = re.compile(r"[=<>≤≥≈+-]|\\(?:leq?|geq?|lt|gt|approx)(?![A-Za-z])")
_OPTION = re.compile(r"(?i:option |choice |answer )?(?:\((?P<inside>[A-Ja-j])\)|(?P<bare>[A-J])[).]?)")
_OPTION_TEXT = re.compile(r"\(?([A-J])(?:[.):]+\s*|\s+[-\u2013:]\s+)(?=\S)")


def clean(text: str) -> str:
    """The answer itself: without math delimiters, emphasis, text wrapped around all of it, and a final full stop."""
    text = text.strip().removeprefix("**")
    if "$" in text:
        money = len(re.findall(r"(?<!\\)\$", text)) % 2 == 1
        text = _CURRENCY.sub(r"\\$", text, count=1) if money else text
    for _ in range(3 if "\\begin" in text else 0):  # 'equation' around 'aligned'
        text = _ALIGNED.sub(lambda match: _rows(match[3]), text)
    text = _COLOURED.sub(r"\\displaystyle", text) if "color" in text else text
    if "\\begin" not in text:  # there '\\\\' ends a row
        text = _ESCAPED_TWICE.sub(r"\\", text)
    if "\\" in text or "{" in text:
        text = _RUN_ON.sub(" ", _DIGIT_GAPS.sub(",", text))
    text = _NOON.sub(r"\1m", text)
    text = _DEGREES.sub("°", _DELIMITERS.sub("", text))
    inner: str | None = text
    while inner is not None:
        text = _without_end(inner.strip())
        inner = _unwrapped(text)
    return text


def plain(text: str) -> str:
    """A cleaned answer as it is compared with another as text: without its spaces and the commands for show."""
    text = _TEXT_COMMAND.sub(r" \1 ", text) if "\\" in text else text
    text = _DOTS.sub("...", text) if "dots" in text else text
    text = _FILLER.sub(" ", text).replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")
    return _GAP.sub("", re.sub(r"\s+", " ", text.strip()))


def phrase(text: str) -> str:
    """A text answer as words: lower case, one name for the ways to say the same."""
    text = " ".join(re.sub(r"[^\w\s'%$-]+", " ", plain(text).lower()).split())
    return words.SYNONYMS.get(text, text)


def option(text: str) -> tuple[str | None, str]:
    """The letter of an answer that is an option of a list, in upper case, and what stands beside it.

    'C', '(C)', 'option C' and 'C: more than ten' are option C. A small letter alone is a symbol: None.
    """
    if match := _OPTION.fullmatch(text):
        return (match["inside"] or match["bare"]).upper(), ""
    match = _OPTION_TEXT.match(text)
    return (match[1], text[match.end() :]) if match else (None, "")


def _rows(body: str) -> str:
    """The rows of an aligned display as one text: a row that begins with a sign goes on with the one before."""
    rows = [_NO_CONTENT.sub(" ", row).strip().rstrip(",;") for row in _ROW_END.split(body)]
    joined = ""
    for row in filter(None, rows):
        joined += (" " if not joined or _CONTINUES.match(row) else ", ") + row
    return joined


def _without_end(text: str) -> str:
    if _GOES_ON.search(text):
        return text
    before = None
    while before != text:
        before = text
        text = _SPACE_COMMAND.sub("", text).rstrip(" \t\r\n.,;:?*。")
        if text.endswith("\\"):
            text = before
            break
    return text.rstrip("!") if _EXCLAIMED.search(text[-40:]) else text  # 'Yes!' is no factorial


def _unwrapped(text: str) -> str | None:
    """What `\\text{...}` holds when nothing stands beside it."""
    match = _WRAPPED.match(text)
    if match is None or not text.endswith("}"):
        return None
    depth = 1
    for mark in _BRACES.finditer(text, match.end()):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth == 0:
            return text[match.end() : mark.start()] if mark.end() == len(text) else None
    return None
