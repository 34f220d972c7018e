"""Where a completion, or a gold in any of its usual forms, holds its answer. Linear in the length of the text."""

from __future__ import annotations

import re
from typing import NamedTuple

from grpo_studio.verifiers.answer_text import after_thinking, inside_answer_tags, last_box, normalise

_REACH = 300
_MARKER = re.compile(r"(?<!#)####(?!#)[ \t]*([^\n]*)")
_PHRASE = re.compile(
    r"""(?: \banswer (?: [ ](?:to|for|of|in)\b [^.:\n$]{0,60}? )? [*_`"')\]]{0,4} \s{0,3}
            (?: : | = | (?:is|are|was|equals|would[ ]be|should[ ]be|must[ ]be)\b[:]? )
          | (?:答案|答え|正解|정답|답|答) \s{0,2} (?:是|为|為|は|은|는|[:=]) )
        (?:\s{0,2}[:=])? [*_`"\s]{0,12}""",
    re.IGNORECASE | re.VERBOSE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|。")
_IS = re.compile(r"\s(?:is|are|equals)\s")
_PROSE = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,} ")  # between two dollar signs that mean money
_ADVERBS = re.compile(
    r"""(?: (?:therefore|thus|hence|then|simply|just|clearly|indeed|actually|obviously|precisely|exactly|now|still
            |equal[ ]to|given[ ]by|as[ ]follows) \b [,:]? \s* )+""",
    re.IGNORECASE | re.VERBOSE,
)
_REASON = re.compile(
    r"""  ,?\s+ (?:because|since)\b
        | ,\s* as (?=\s+(?:[\d$\\(]|(?:we|it|they|there|this|that|the|required|desired|expected|shown|needed)\b))
        | ,\s* (?:not|rather\ than)\b
        | \s* \( (?:because|since|as|using|by|from|not)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_COPULA = re.compile(r"\s*(?:입니다|이다|이에요|예요|です|である|(?:に|と)なります)$")
_DISPLAY = re.compile(
    r"""\$\$ .{1,2000}? \$\$ | \\\[ .{1,2000}? \\\] | \\\( .{1,2000}? \\\)
        | \\begin\s*\{([a-z]{1,12}\*?)\} .{1,2000}? \\end\s*\{\1\}""",
    re.DOTALL | re.VERBOSE,
)
_DOLLARS = re.compile(r"\$\$([^$]{1,2000})\$\$|(?<![\\\d])\$([^$\n]{1,1000})\$")
_BRACKETED = ((r"\[", r"\]"), (r"\(", r"\)"))
_TAIL = 8000  # only the end of a text is searched for statements and formulas
_LONGEST_BARE = 120


class Found(NamedTuple):
    """The text of an answer, or None with the reason why there is none."""

    text: str | None
    reason: str = ""


def in_completion(completion: str, *, strict_box: bool) -> Found:
    """The last box after the thinking; without one, unless `strict_box`, what is stated, or the last formula."""
    text = after_thinking(normalise(completion))
    if text is None:
        return Found(None, "the thinking never ends")
    tagged = inside_answer_tags(text)
    box = last_box(tagged)
    if box is None and tagged is not text:
        box = last_box(text)
    if box is not None:
        content = box[1]
        if content is None or not content.strip():
            return Found(None, "its last box is empty or never closes")
        return Found(content)
    if strict_box:
        return Found(None, "no box")
    stated = _stated(tagged) or (tagged if tagged is not text else "") or _last_formula(tagged) or _bare(tagged)
    return Found(stated.strip()) if stated.strip() else Found(None, "no answer is stated")


def in_gold(gold: str) -> str:
    """The answer that a gold text holds: boxed, after ####, stated, or all of it; '' when there is none."""
    text = inside_answer_tags(after_thinking(normalise(gold)) or "")
    if (box := last_box(text)) is not None:
        return box[1] or ""
    return (_stated(text) or text).strip()


def _stated(text: str) -> str:
    """What follows the last #### or 'the answer is', to the end of its line or sentence."""
    text = text[-_TAIL:]
    phrases = list(_PHRASE.finditer(text)) if re.search("answer|答|正解|답", text, re.IGNORECASE) else []
    markers = list(_MARKER.finditer(text)) if "####" in text else []
    phrase = phrases[-1] if phrases else None
    marker = markers[-1] if markers else None
    if marker and (phrase is None or marker.start() > phrase.start()):
        return marker[1][:_REACH].strip().strip("*_`")
    if phrase is None:
        return ""
    adverbs = _ADVERBS.match(text, phrase.end())
    start = adverbs.end() if adverbs else phrase.end()
    display = _DISPLAY.match(text, start)
    if display and "\n" in display[0]:
        return display[0]
    line = text[start : start + _REACH].partition("\n")[0]
    line = _REASON.split(line, maxsplit=1)[0]
    formula = _DOLLARS.match(line)
    if formula and not re.match(r"\s*(?:and|or|,)", line[formula.end() :]):
        return formula[1] or formula[2]
    sentence = _COPULA.sub("", _SENTENCE_END.split(line, maxsplit=1)[0].strip().strip('*_`"'))
    return _IS.split(sentence)[-1] if len(sentence.split()) > 4 else sentence


def _last_formula(text: str) -> str:
    text = text[-_TAIL:]
    found = [(match.end(), match[1] or match[2]) for match in _DOLLARS.finditer(text)][-1:]
    for opening, closing in _BRACKETED:
        end = text.rfind(closing)
        start = text.rfind(opening, 0, max(end, 0))
        if start >= 0:
            found.append((end, text[start + 2 : end]))
    formula = max(found)[1] if found else ""
    return "" if _PROSE.search(formula) and "\\" not in formula else formula


def _bare(text: str) -> str:
    """A text that is nothing but the answer: one short line."""
    text = text.strip()
    return text if len(text) <= _LONGEST_BARE and "\n" not in text else ""
