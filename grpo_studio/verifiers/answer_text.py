"""Where in a completion its answer stands. Every scan is linear in the length of the text: models write anything.
Most look from the end, where answers are, and leave the rest of a long text unread.

Only what follows the last closing think tag counts; thinking that never ends has no answer. In that part an
explicit statement (`#### 36`, `The answer is 36`, `\\boxed{36}`) outranks all else, and the last one wins,
whatever its form.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_ANSWER_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)
_SUPERSCRIPT = re.compile("[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_AFTER_DIGIT_VULGAR = re.compile(r"(?<=\d)(?=[¼½¾⅐-⅞])")
# What stands before is looked at last, so that the search skips to the braces and backslashes.
# '1,\\,234' may be a pair; the negative space in '1,\\! 234' stands in numbers only.
_LATEX_THOUSANDS = re.compile(
    r"\{,\}(?=[0-9]{3})(?<=[0-9]\{,\})|\\[,;:!](?:(?<=[0-9]\\[,;:!])|(?<=[0-9],\\!))\s{0,4}(?=[0-9]{3})"
)
# Dashes that people type for a minus sign, other decimal marks, and characters that do not show.
_TYPOGRAPHY = {
    **dict.fromkeys("\u2010\u2012\u2013\u2212\ufe63", "-"),
    "\u2044": "/",
    "\u066b": ".",
    "\u066c": ",",
    **dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad", ""),
}
_TYPOGRAPHIC = re.compile(f"[{''.join(_TYPOGRAPHY)}]")
_FRACTION_OR_RAISED = re.compile("[¼½¾⅐-⅞⁰¹²³⁴⁵⁶⁷⁸⁹]")
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s{0,4}(?P<open>\{)?|\\.", re.DOTALL)
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_MARKER = re.compile(r"(?<!#)####(?!#)([^\n]*)")
# '#### Step 3' and '#### 3. Check' are headings; what a marker states begins with the number itself.
_MARKED_NUMBER = re.compile(
    r"[\s*_`$€£¥₹\\({=~+-]*(?:(?i:minus|negative)\s{1,4}[$€£¥₹]?)?\.?[0-9]|\s*\\[dtc]?frac|\s*(?:US\$|USD|EUR|GBP|Rs\.?)\s?[0-9]"
)
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
_ANSWER_WORDS = re.compile("答|正解|정답")  # those of _PHRASE besides 'answer'
_LEAD = len("final   ")  # the most that stands before 'answer' in a match of _PHRASE
_LONGEST_PHRASE = 120  # and more than a whole match is long, with that in front
# How far a statement is read. It also keeps the scan linear when every word of a long line begins a statement.
_REACH = 300
_DIGIT = re.compile(r"[0-9]")
_SENTENCE_END = re.compile(r"[.!?](?=[\s*_)\]]|$)(?!(?<=!)[ ]?[=/\u00d7])|。")
_BULLET = re.compile(r"\s*-[ ]+")


class Statement(NamedTuple):
    """An explicit answer: its text, where it begins, and whether it must be all answer (`exact`) or may go on."""

    start: int
    text: str
    exact: bool


def normalise(text: str) -> str:
    """One spelling for what looks alike: full-width and other digits, minus signs, ½, 10²³, LaTeX separators."""
    if not text.isascii():
        if _FRACTION_OR_RAISED.search(text):
            text = _AFTER_DIGIT_VULGAR.sub(" ", text)
            text = _SUPERSCRIPT.sub(lambda match: "^" + match[0], text)  # NFKC alone turns 10² into 102.
        text = _TYPOGRAPHIC.sub(lambda match: _TYPOGRAPHY[match[0]], unicodedata.normalize("NFKC", text))
        text = _OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match[0])), text)
    return _LATEX_THOUSANDS.sub(_thousands, text) if "{,}" in text or "\\" in text else text


def _thousands(match: re.Match[str]) -> str:
    return "" if match.string[match.start() - 1] == "," else ","


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
    last = None
    if "\\boxed" in text or "\\fbox" in text:
        for match in _BOX.finditer(text):  # every command in turn: in '\\\\boxed' the backslash is another's
            last = match if "box" in match[0] else last
    if last is None:
        return None
    return last.start(), _box_content(text, last.end(), braced=last["open"] is not None)


def _box_content(text: str, start: int, braced: bool) -> str | None:
    if not braced:
        return text[start : start + 1].strip("\\") or None
    depth = 1
    for match in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if not depth:
            return text[start : match.start()]
    return None


def last_statement(text: str) -> Statement | None:
    """The last explicit answer in normalised text, or None. An empty marker or an unclosed box states nothing ('')."""
    last = _last_marker(text)
    box = last_box(text) if "\\" in text else None
    if box and (last is None or box[0] > last.start):
        last = Statement(box[0], box[1] or "", exact=True)
    after = last.start if last else 0
    if "answer" not in text[after:].lower() and (text.isascii() or not _ANSWER_WORDS.search(text, after)):
        return last
    phrase = _last_phrase(text)
    return phrase if phrase and (last is None or phrase.start > last.start) else last


def _last_marker(text: str) -> Statement | None:
    start = len(text)
    while (at := text.rfind("####", 0, start)) >= 0:
        end, start = start, text.rfind("\n", 0, at) + 1
        if match := _MARKER.search(text, start, end):  # the first marker of a line states all the rest of it
            rest = match[1][:_REACH].strip()
            if not rest:  # the number may stand on the line below
                below = _unlisted(text[match.end() : match.end() + _REACH].lstrip("\n").partition("\n")[0]).strip()
                rest = below if _MARKED_NUMBER.match(below) and not _HEADING.match(below) else ""
            if not rest.strip("*_` ") or (_MARKED_NUMBER.match(rest) and not _HEADING.match(rest)):
                return Statement(match.start(), rest, exact=False)
    return None


def _unlisted(line: str) -> str:
    """A line without the bullet of a list, which is no minus sign: '- 7'."""
    return line[bullet.end() :] if (bullet := _BULLET.match(line)) else line


def _last_phrase(text: str) -> Statement | None:
    for start in _phrase_starts(text):
        for match in reversed(list(_PHRASE.finditer(text, start))):
            if not _DIGIT.search(text, match.end(), match.end() + _REACH):
                continue
            line = text[match.end() : match.end() + _REACH].partition("\n")[0]
            line = _unlisted(line) if "\n" in match[0] else line
            sentence = _SENTENCE_END.split(line, maxsplit=1)[0].strip()
            if _DIGIT.search(sentence):  # 'the answer is clear' states nothing
                return Statement(match.start(), sentence, exact=False)
    return None


def _phrase_starts(text: str) -> list[int]:
    """Where to look for phrases from: before the last 'answer', where no match can reach over; then the whole text."""
    lowered = text.lower()
    # One letter may become two in lower case; then the positions are not those of the text.
    if len(lowered) != len(text) or (not text.isascii() and _ANSWER_WORDS.search(text)):
        return [0]
    last = lowered.rfind("answer")
    while (before := lowered.rfind("answer", max(0, last - _LONGEST_PHRASE), last)) >= 0:
        last = before
    first = lowered.find("answer")
    return [max(0, last - _LEAD)] if first == last else [max(0, last - _LEAD), max(0, first - _LEAD)]
