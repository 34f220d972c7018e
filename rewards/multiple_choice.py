"""The letter that a completion chooses against the gold option."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any, Literal, NamedTuple

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.answer_text import after_thinking, inside_answer_tags, last_box, normalise
from grpo_studio.verifiers.gold import accepted_golds

_PHRASE = re.compile(
    r"""(?: \b(?:answer|option|choice|letter) (?:\s(?:choice|letter|option))? [*_`"')\]]{0,4}
            (?: \s(?:to|for|of|in)\b [^.:\n]{0,60}? )? \s{0,3}
            (?: [:=] | (?:is|was|(?:should|would|must|will)\sbe)\b )
          | \bfinal\s{1,3}(?:answer|choice)\b
          | (?<!\bnot\s)(?<!n't\s)(?<!n\u2019t\s)\b(?:choose|chose|pick|select|go\swith|going\swith)\b
          | (?:答案|答え|正解|정답|答|选择|选|選) \s{0,2} (?:是|为|為|は|은|는|[:=])?
          | (?<!\#)\#{4}(?!\#) )""",
    re.IGNORECASE | re.VERBOSE,
)
_LAST_PHRASES = 64  # that are looked at, of a text of thousands
_LEAD = re.compile(r"""[\s*_`$:"'>\\]{0,12}(?:(?:text|textbf|mathrm|boxed)\{)?""")
_WORD = re.compile(r"(?:the\s)?(?:option|choice|letter|answer)\b[\s:*]{0,4}", re.IGNORECASE)
_LETTER = re.compile(
    r"""[(\[*`{"'$]{0,4}(?P<letter>[A-Za-z])(?![0-9A-Za-z_'\u00c0-\u024f\u2019-])(?P<close>[)\]}*`"'$]{0,4})"""
)
# 'A' and 'I' are words and a small letter may be one: without brackets they must end what is said.
_ENDED = re.compile(
    r"\s*(?:\Z|\n|[,;:!?)&/-]|\.(?:\s|\Z)|(?:because|since|as|or|and)\b|[\u3002\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3])"
)
_NEXT = re.compile(r"\s*(?:(?P<comma>,)(?!\s*(?:or|and)\b)|,?\s*(?:or|and)\b|[/&或和])\s*")
_JUDGED = re.compile(
    r"(?<!\bor\s)(?<!\bnor\s)(?<!\band\s)(?<!\bnot\s)(?:\b[Oo]ption\s)?[(\[*]{0,3}\b(?P<letter>[A-Z])\b[)\]*]{0,3}"
    r"\sis\s(?:the\s)?(?:most\s)?(?:right|correct|best|true)\b(?!\s?\?)"
)
_LISTED = re.compile(r"(?:(?<=\s)|(?<=\s[(\[])|\A[(\[]?)(?P<letter>[A-Za-z])[)\].:](?=\s)")
_ALONE = re.compile(
    r"[\s*_`$>#(\[-]*(?:(?:option|choice|answer)\s)?[(\[*]*(?P<letter>[A-Za-z])[)\].:*_`$\s]*", re.IGNORECASE
)
_HEADED = re.compile(r"[\s*_`>#]*[(\[]?(?P<letter>[A-Za-z])[)\].:]\*{0,2}\s+\S")
_MARKED = re.compile(r"\((?P<round>[A-Za-z])\)|\*\*\(?(?P<bold>[A-Z])[).:]?\*\*|\b[Oo]ption\s(?P<named>[A-Z])\b")
_GOLD = re.compile(r"[(\[*\s]*(?P<letter>[A-Za-z])(?:[)\].:*\s]*|[)\].:]\s.*)", re.DOTALL)


class _Options(NamedTuple):
    """The letters there are, the options' texts in the same order, and what the data calls them; texts may lack."""

    letters: str
    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def named(self, text: str) -> frozenset[str]:
        """The letters of the options with this text."""
        wanted = _plain(text)
        return frozenset(a for a, b in zip(self.letters, self.texts, strict=False) if b == wanted and wanted)


def check(options: int, first: int) -> str | None:
    """The number of options is one that letters can name."""
    return None if 2 <= options <= 26 else f"options is {options}; it must be from 2 to 26"


def ideal(answer: Any, choices: Any = None, options: int = 10, first: int = 0, **_: Any) -> str | None:
    """The gold's letter after a phrase."""
    offered = _offered(choices, options)
    golds = offered if isinstance(offered, str) else _gold_letters(answer, offered, first)
    return None if isinstance(golds, str) else f"The answer is ({min(golds)})."


@verifier(
    examples=[
        ("The answer is (C).", {"answer": "C"}, 1.0),
        ("<think>A or B?</think> **B**", {"answer": "b"}, 1.0),
        ("\\boxed{\\text{D}}", {"answer": 3}, 1.0),
        ("C) Paris", {"answer": "Paris", "choices": ["Rome", "Oslo", "Paris"]}, 1.0),
        ("I think that A is a good letter.", {"answer": "A"}, 0.0),
        ("A, B, C, D", {"answer": "A"}, 0.0),
        ("The answer is B", {"answer": "C"}, 0.0),
        ("C", {"answer": None}, None),
    ],
    check=check,
    ideal=ideal,
)
def multiple_choice(
    completion: str, answer: Any, choices: Any = None, *, options: int = 10, first: Literal[0, 1] = 0
) -> Verdict:
    """The one option that the completion chooses is the gold one: 1 or 0.

    The letter is read from the last of: a box, a phrase ('the answer is C', 'Answer: (c)', 'I choose C', `#### C`,
    'C is correct'), a letter on a line of its own; else the only one in brackets or bold. The words 'A' and 'I' are
    no letters, and several letters chosen are no answer. Where the data has the options in a column `choices` (a list,
    or label and text), an option's text counts as its letter.

    The gold is a letter, an option's text, or a number: an index that counts from `first` (0: as in MMLU, 0 is A).
    `options`: how many there are where the data does not say.
    """
    offered = _offered(choices, options)
    golds = offered if isinstance(offered, str) else _gold_letters(answer, offered, first)
    if isinstance(offered, str) or isinstance(golds, str):
        return Verdict(None, str(golds))
    text = after_thinking(normalise(completion))
    if text is None:
        return Verdict(0.0, "the thinking never ends")
    chosen = _chosen(inside_answer_tags(text).strip(), offered)
    if len(chosen) != 1:
        return Verdict(
            0.0, "several options chosen" if chosen else "no option chosen", ", ".join(sorted(chosen)) or None
        )
    [letter] = chosen
    right = letter in golds
    return Verdict(float(right), "" if right else f"{letter} is not {' or '.join(sorted(golds))}", letter)


def _chosen(text: str, options: _Options) -> frozenset[str]:
    """The letters of the last explicit choice; without one, of what is marked in the text."""
    stated = [*_boxed(text, options), *_stated(text, options), *_judged(text, options), *_on_a_line(text, options)]
    if stated:
        return max(stated, key=lambda choice: choice[0])[1]
    if named := options.named(text):
        return named
    marked = (match["round"] or match["bold"] or match["named"] for match in _MARKED.finditer(text))
    return frozenset(marked_letter.upper() for marked_letter in marked) & frozenset(options.letters)


def _boxed(text: str, options: _Options) -> list[tuple[int, frozenset[str]]]:
    box = last_box(text)
    if box is None:
        return []
    content = box[1] or ""
    return [(box[0], _letters_at(content, 0, options) or options.named(content))]


def _stated(text: str, options: _Options) -> list[tuple[int, frozenset[str]]]:
    for match in reversed(deque(_PHRASE.finditer(text), maxlen=_LAST_PHRASES)):
        letters = _letters_at(text, match.end(), options)
        if not letters and options.texts:
            said = re.split(r"[.!?](?:\s|\Z)|\n", text[match.end() : match.end() + 500].lstrip(" :*"), maxsplit=1)[0]
            letters = options.named(said)
        if letters:
            return [(match.start(), letters)]
    return []


def _judged(text: str, options: _Options) -> list[tuple[int, frozenset[str]]]:
    found = [match for match in _JUDGED.finditer(text) if match["letter"] in options.letters]
    return [(found[-1].start(), frozenset(found[-1]["letter"]))] if found else []


def _on_a_line(text: str, options: _Options) -> list[tuple[int, frozenset[str]]]:
    """A letter that is a whole line, or heads the first or the last one ('C) Paris'); not one of a list of options."""
    listed = {match["letter"].upper() for match in _LISTED.finditer(text)} & set(options.letters)
    found: list[tuple[int, str]] = []
    at = 0
    for line in text.split("\n"):
        match = _ALONE.fullmatch(line) if len(line) < 40 else None
        if match is None and (at == 0 or at + len(line) == len(text)) and len(listed) < 2:
            match = _HEADED.match(line)
        if match and match["letter"].upper() in options.letters:
            found.append((at, match["letter"].upper()))
        at += len(line) + 1
    letters = {letter for _, letter in found}
    return [(found[-1][0], frozenset(letters))] if len(letters) == 1 else []


def _letters_at(text: str, at: int, options: _Options) -> frozenset[str]:
    """The letters that stand right here, joined by commas, 'or' and 'and'; none when a word does."""
    found: set[str] = set()
    at = _after(_WORD, text, _after(_LEAD, text, at))
    sure = "BCDEFGHJKLMNOPQRSTUVWXYZ"
    while (match := _LETTER.match(text, at)) and match["letter"].upper() in options.letters:
        bracketed = set(match["close"]) & set(")]}*")
        if not (bracketed or match["letter"] in sure or _ENDED.match(text, match.end())):
            break
        found.add(match["letter"].upper())
        joined = _NEXT.match(text, match.end())
        if joined is None:
            break
        # 'B or A' chooses A as well; what follows 'B, ' may be the next clause.
        sure = "" if joined["comma"] else "ABCDEFGHJKLMNOPQRSTUVWXYZ"
        at = _after(_WORD, text, joined.end())
    return frozenset(found)


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _offered(choices: Any, count: int) -> _Options | str:
    """The options of this row, or why its column cannot be read."""
    if choices is None:
        return _Options(ascii_uppercase[:count])
    labels: Sequence[Any] = ()
    if isinstance(choices, Mapping):
        if "text" in choices:
            choices, labels = choices["text"], choices.get("label") or ()
        else:
            choices, labels = list(choices.values()), list(choices)
    if not isinstance(choices, (list, tuple)) or not 2 <= len(choices) <= 26:
        return f"the choices are not a list of 2 to 26 options: {choices!r:.100}"
    texts = tuple(_plain(str(choice)) for choice in choices)
    return _Options(ascii_uppercase[: len(texts)], texts, tuple(str(label).strip() for label in labels))


def _gold_letters(answer: Any, options: _Options, first: int) -> frozenset[str] | str:
    """The letters of the accepted options, or why there is none."""
    if isinstance(answer, (list, tuple)):
        found = [_gold_letters(item, options, first) for item in answer if not isinstance(item, (list, tuple))]
        letters = frozenset().union(*(item for item in found if isinstance(item, frozenset)))
        return letters or next((item for item in found if isinstance(item, str)), "the gold answer is an empty list")
    texts = accepted_golds(answer)
    if isinstance(texts, str):
        return texts
    letters = (
        frozenset() if isinstance(answer, (int, float)) and not isinstance(answer, bool) else _named(texts[0], options)
    )
    if not letters and re.fullmatch(r"[0-9]{1,2}", texts[0]) and 0 <= int(texts[0]) - first < len(options.letters):
        letters = frozenset(options.letters[int(texts[0]) - first])
    if len(letters) != 1:
        why = "which could be several of the options" if letters else f"none of the options {options.letters}"
        return f"the gold answer is {texts[0]!r:.80}, {why} (numbers count from {first})"
    return letters


def _named(text: str, options: _Options) -> frozenset[str]:
    """The options that a gold text can mean: by the data's label, by its letter or by its text."""
    if text in options.labels:
        return frozenset(options.letters[options.labels.index(text)])
    match = _GOLD.fullmatch(text)
    letter = match["letter"].upper() if match else ""
    return options.named(text) | (frozenset(letter) if letter and letter in options.letters else frozenset())


def _plain(text: str) -> str:
    text = re.sub(r"\\(?:text|textbf|mathrm)\{([^{}]*)\}", r"\1", normalise(text))
    return " ".join(text.split()).strip(" *_`\"'$").rstrip(".,;:").casefold()
