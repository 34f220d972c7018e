"""Where in a completion its answer stands. Every scan is linear in the length of the text: models write anything.

Only what follows the last closing think tag counts; thinking that never ends has no answer. In that part an
explicit statement (`#### 36`, `The answer is 36`, `\\boxed{36}`) outranks all else, and the last one wins,
whatever its form.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_ANSWER_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)
_SUPERSCRIPT = re.compile("[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_AFTER_DIGIT_VULGAR = re.compile("(?<=[0-9])(?=[¼½¾⅐-⅞])")
_LATEX_THOUSANDS = re.compile(r"(?<=[0-9])(?:\{,\}|\\[,;:!])(?=[0-9]{3})")
# Dashes that people type for a minus sign, other decimal marks, and characters that do not show.
_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2012\u2013\u2212\ufe63", "-"),
        "\u2044": "/",
        "\u066b": ".",
        "\u066c": ",",
        **dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad", None),
    }
)
_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s{0,4}(?P<open>\{)?|\\.|[{}]", re.DOTALL)
_MARKER = re.compile(r"(?<!#)####(?!#)([^\n]*)")
# '#### Step 3' and '#### 3. Check' are headings; what a marker states begins with the number itself.
_MARKED_NUMBER = re.compile(r"[\s*_`$€£¥₹\\({=~+-]*\.?[0-9]|\s*\\[dtc]?frac|\s*(?:US\$|USD|EUR|GBP|Rs\.?)\s?[0-9]")
_HEADING = re.compile(r"\s*[0-9]+[.)]\s+[^\W\d_]")
_PHRASE = re.compile(
    r"""(?: \banswers? [*_`"')\]]{0,4}
            (?: \s(?:to|for|of|in|after)\b [^.:\n]{0,60}? )?
            \s{0,3} (?: [:=] | (?:is|are|was|equals|becomes|(?:should|would|will|must)\sbe)\b )
          | \bfinal\s{1,3}answer [*_`"')\]]{0,4} (?= [\s*_`$({\\]{0,8} -?\.?[0-9] )
          | (?:答案|答え|正解|정답|答) \s{0,2} (?:是|为|為|は|은|는|[:=]) )
        [*_`:\s]{0,12}""",
    re.IGNORECASE | re.VERBOSE,
)
# How far a statement is read. It also keeps the scan linear when every word of a long line begins a statement.
_REACH = 300
_DIGIT = re.compile(r"[0-9]")
_SENTENCE_END = re.compile(r"[.!?](?=[\s*_)\]]|$)|。")


@dataclass(frozen=True)
class Statement:
    """An explicit answer: its text, where it begins, and whether it must be all answer (`exact`) or may go on."""

    start: int
    text: str
    exact: bool


def normalise(text: str) -> str:
    """One spelling for what looks alike: full-width and other digits, minus signs, ½, 10²³, LaTeX separators."""
    if not text.isascii():
        text = _AFTER_DIGIT_VULGAR.sub(" ", text)
        text = _SUPERSCRIPT.sub(lambda match: "^" + match[0], text)  # NFKC alone turns 10² into 102.
        text = unicodedata.normalize("NFKC", text).translate(_TYPOGRAPHY)
        text = "".join(str(unicodedata.decimal(c)) if c > "9" and c.isdecimal() else c for c in text)
    return _LATEX_THOUSANDS.sub(",", text)


def after_thinking(text: str) -> str | None:
    """What follows the last closing think tag, or all of it when there is none; None for unfinished thinking."""
    end = 0
    unfinished = False
    for tag in _THINK.finditer(text):
        unfinished = not tag[1]
        end = tag.end()
    return None if unfinished else text[end:]


def inside_answer_tags(text: str) -> str:
    """What the last `<answer>` holds (to the end, when it is not closed), or the text as it is without one."""
    start, end = None, len(text)
    for tag in _ANSWER_TAG.finditer(text):
        if not tag[1]:
            start, end = tag.end(), len(text)
        elif end == len(text):
            end = tag.start()
    return text if start is None else text[start:end]


def last_box(text: str) -> tuple[int, str | None] | None:
    """Where the last `\\boxed` or `\\fbox` begins and what it holds; content None when its brace never closes.

    Without braces LaTeX boxes one token, so `\\boxed 7` holds '7'. None when there is no box.
    """
    opened: list[tuple[int, int]] = []  # (start of a box or -1 for a plain brace, start of the content)
    last: tuple[int, str | None] | None = None
    for match in _BOX.finditer(text):
        token = match[0]
        if token == "{":
            opened.append((-1, match.end()))
        elif token == "}":
            start, content = opened.pop() if opened else (-1, 0)
            if start >= 0 and (last is None or start >= last[0]):
                last = (start, text[content : match.start()])
        elif "box" in token:
            if match["open"]:
                opened.append((match.start(), match.end()))
                last = (match.start(), None)
            else:
                last = (match.start(), text[match.end() : match.end() + 1].strip("\\") or None)
    return last


def last_statement(text: str) -> Statement | None:
    """The last explicit answer in normalised text, or None. An empty marker or an unclosed box states nothing ('')."""
    found = [*_last_marker(text), *_last_phrase(text)]
    if box := last_box(text):
        found.append(Statement(box[0], box[1] or "", exact=True))
    return max(found, key=lambda statement: statement.start, default=None)


def _last_marker(text: str) -> list[Statement]:
    last = []
    for match in _MARKER.finditer(text):
        rest = match[1][:_REACH].strip()
        if not rest.strip("*_` ") or (_MARKED_NUMBER.match(rest) and not _HEADING.match(rest)):
            last = [Statement(match.start(), rest, exact=False)]
    return last


def _last_phrase(text: str) -> list[Statement]:
    for match in reversed(list(_PHRASE.finditer(text))):
        if not _DIGIT.search(text, match.end(), match.end() + _REACH):
            continue
        line = text[match.end() : match.end() + _REACH].partition("\n")[0]
        sentence = _SENTENCE_END.split(line, maxsplit=1)[0].strip()
        if _DIGIT.search(sentence):  # 'the answer is clear' states nothing
            return [Statement(match.start(), sentence, exact=False)]
    return []
