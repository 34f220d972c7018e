"""Which of the lettered options a text chooses. Every scan is linear in the length of the text.

The last explicit choice counts; where there is none, the only letter in brackets or bold that the text does not reject.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

from grpo_studio.verifiers.answer_text import last_box, normalise

_TEXT_COMMAND = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|it|rm|sf|tt)|mbox)\s?\{([^{}]*)\}")
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "`": "'"})  # noqa: RUF001
_SURE = r"(?:definitely|certainly|clearly|obviously|surely|undoubtedly|most\slikely|probably|likely|indeed|simply|just)"
_PHRASE = re.compile(
    rf"""(?: (?<!wrong\s)(?<!incorrect\s)\b(?:answer|option|choice|letter)
            (?:\s(?:choice|letter|option))? [*_"')\]]{{0,4}}
            (?: \s(?:to|for|of|in)\b [^.:\n]{{0,60}}? )? \s{{0,3}}
            (?: [:=] | (?:is|was|(?:should|would|must|will)\sbe)\b )
          | \bans(?:\.|\s?[:=])
          | \bfinal\s{{1,3}}(?:answer|choice)\b
          | (?<!\bnot\s)(?<!n't\s)\b(?:choose|chose|pick|select|go\swith|going\swith)\b
          | \bnot\s(?:option\s)?[(\[*'"]{{0,3}}[A-Z][)\]*'"]{{0,3}},?\sbut(?:\srather)?\b
          | (?:答案|答え|正解|정답|答|选择|选|選) \s{{0,2}} (?:是|为|為|は|은|는|[:=])?
          | (?<!\#)\#{{4}}(?!\#) ) (?:\s{_SURE}\b)?""",
    re.IGNORECASE | re.VERBOSE,
)
_LAST_PHRASES, _LAST_MARKS = 64, 256  # that are looked at, of a text of thousands
_LEAD = re.compile(r"""[\s*_$:"'>\\]{0,12}(?:boxed\{)?""")
_WORD = re.compile(r"(?:the\s)?(?:option|choice|letter|answer)\b[\s:*]{0,4}", re.IGNORECASE)
_LETTER = re.compile(
    r"""[(\[*{"'$]{0,4}(?P<letter>[A-Za-z])(?![0-9A-Za-z_\u00c0-\u024f-]|'[A-Za-z])(?P<close>[)\]}*"'$]{0,4})"""
)
# 'A' and 'I' are words and a small letter may be one: without brackets they must end what is said.
_ENDED = re.compile(
    r"\s*(?:\Z|\n|[,;:!?()&/|+-]|\.(?:\s|\Z)|(?:because|since|as|or|and|but)\b"
    r"|[\u3002\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3])"
)
_MAYBE = r"(?:maybe|perhaps|possibly)"
_NEXT = re.compile(
    rf"""\s*[,(]?\s*(?:(?:or|and(?:/or)?|as\swell\sas)\b|(?:but\s)?(?={_MAYBE}\b))
           (?:\s?(?:{_MAYBE}|even|also|else|it|could|might|may|is|be)\b)*\s*
       | \s*(?P<loose>[,;])\s*
       | \s*[/&|+或和]\s*
       | [ \t]*(?P<glued>(?=[(\[*][(\[*]{{0,2}}[A-Za-z][)\]*]))
       | \s+(?=[A-Z](?:\s+[A-Z]){{0,25}}\s*(?:\.?\Z|\.\s)) """,
    re.VERBOSE,
)
_JUDGED = re.compile(
    r"(?<!\b[Oo]r\s)(?<!\b[Nn]or\s)(?<!\b[Aa]nd\s)(?<!\b[Nn]ot\s)(?<!\b[Ii]f\s)(?<!\b[Ww]hether\s)"
    r"(?:\b[Oo]ption\s)?[(\[*]{0,3}\b(?P<letter>[A-Z])\b[)\]*]{0,3}"
    r"\sis\s(?:(?:the|my|our)\s)?(?:most\s|final\s)?(?:right|correct|best|true|answer|choice)\b(?!\s?\?)"
    r"(?P<aside>,?\s(?:in\s(?:some|certain|general|other|many|theory)|only|if|when|unless|sometimes|under|avoided)\b)?"
)
_LISTED = re.compile(r"(?:(?<=\s)|(?<=\s[(\[])|\A[(\[]?)(?P<letter>[A-Za-z])[)\].:](?=\s)")
_ALONE = re.compile(
    rf"""[\s*_$>#(\["'-]*(?:{_SURE}\s)?(?:(?:option|choice|answer)\s)?"""
    r"""[(\[{*"']*(?P<letter>[A-Za-z])[)\]}.:*_$"'\s]*""",
    re.IGNORECASE,
)
_HEADED = re.compile(
    r"[\s*_>#]*[(\[]?(?P<letter>[A-Za-z])(?:[)\].:]\*{0,2}\s+(?!(?:or|and)\b|[/&|])\S|(?<=[A-HJ-Z])[)\]*]{0,3},?\s(?:because|since)\b)"
)
_MARKED = re.compile(r"\((?P<round>[A-Za-z])\)|\*\*\(?(?P<bold>[A-Z])[).:]?\*\*|\b[Oo]ption\s(?P<named>[A-Z])\b")
# What is said of a letter just before it and just after it, up to the end of the clause.
_CLAUSE_BEFORE = re.compile(r"(?:[.!?;,:\n]|\b(?:so|because|since|leaving|therefore|(?<!nything )but)\b)")
_CLAUSE_AFTER = re.compile(r"[.!?;\n]|,(?!\swhich)|\b(?:so|because|since|but|while)\b")
_REJECTED_BEFORE = re.compile(
    r"(?:\b(?:not|never|cannot|neither|nor|except|doubt|anything but|other than|instead of|rather than)\b|n't\b)"
    r"(?:\s+[^\s]+){0,4}\s*\Z|\b(?:rul\w+ out|eliminat\w+|exclud\w+|discard\w*|reject\w*|dismiss\w*|cross\w* out)\b",
    re.IGNORECASE,
)
_REJECTED_AFTER = re.compile(
    r"[)\]*.:,]*(?:\s+[^\s]+){0,4}?\s*(?:n't\b|[✗✘❌×]|\b(?:not|never|cannot|wrong|incorrect|false|untrue|invalid|fails?"  # noqa: RUF001
    r"|impossible|unlikely|ruled out|out|eliminated|excluded|discarded|rejected)\b)",
    re.IGNORECASE,
)
_DENIED_PHRASE = re.compile(
    r"(?:(?:n't|\bnot)\s(?:think|believe|say|claim|mean)|\bdoubt)\s(?:that\s)?(?:the\s|my\s)?(?:\w+\s)?\Z",
    re.IGNORECASE,
)
_NEAR = 80


class Options(NamedTuple):
    """The letters there are, the options' texts in the same order, and what the data calls them; texts may lack."""

    letters: str
    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def named(self, text: str) -> frozenset[str]:
        """The letters of the options with this text."""
        wanted = plain(text)
        return frozenset(a for a, b in zip(self.letters, self.texts, strict=False) if b == wanted and wanted)


def plain(text: str) -> str:
    """The text of an option as it is compared."""
    return " ".join(unwrapped(normalise(text)).split()).strip(" *_\"'$").rstrip(".,;:").casefold()


def unwrapped(text: str) -> str:
    """The text without the LaTeX commands around words, and with straight quotes only."""
    return _TEXT_COMMAND.sub(r"\1", _TEXT_COMMAND.sub(r"\1", text)).translate(_QUOTES)


def chosen(text: str, options: Options) -> frozenset[str]:
    """The letters of the last explicit choice; without one, of what is marked in the text."""
    text = unwrapped(text).strip()
    said = [*_explicit(text, options), *_judged(text, options), *_on_a_line(text, options)]
    if said or (said := _judged(text, options, asides=True)):
        return max(said, key=lambda choice: choice[0])[1]
    if named := options.named(text):
        return named
    marks = (match for match in deque(_MARKED.finditer(text), maxlen=_LAST_MARKS) if not _rejected(text, match))
    letters = (match["round"] or match["bold"] or match["named"] for match in marks)
    return frozenset(letter.upper() for letter in letters) & frozenset(options.letters)


def stated(text: str, options: Options) -> frozenset[str]:
    """The letters of the last box or phrase; none when there is neither."""
    said = _explicit(unwrapped(text), options)
    return max(said, key=lambda choice: choice[0])[1] if said else frozenset()


def _explicit(text: str, options: Options) -> list[tuple[int, frozenset[str]]]:
    found = []
    if box := last_box(text):
        found.append((box[0], _letters_at(box[1] or "", 0, options) or options.named(box[1] or "")))
    for match in reversed(deque(_PHRASE.finditer(text), maxlen=_LAST_PHRASES)):
        letters = _letters_at(text, match.end(), options)
        if not letters and options.texts:
            said = re.split(r"[.!?](?:\s|\Z)|\n", text[match.end() : match.end() + 500].lstrip(" :*"), maxsplit=1)[0]
            letters = options.named(said)
        if letters and not _DENIED_PHRASE.search(text[max(0, match.start() - _NEAR) : match.start()]):
            return [*found, (match.start(), letters)]
    return found


def _judged(text: str, options: Options, asides: bool = False) -> list[tuple[int, frozenset[str]]]:
    """What 'C is correct' says last. 'A is correct in some cases' is an aside where anything else is chosen."""
    for match in reversed(deque(_JUDGED.finditer(text), maxlen=_LAST_PHRASES)):
        if match["letter"] in options.letters and (asides or not match["aside"]) and not _denied(text, match.start()):
            return [(match.start(), frozenset(match["letter"]))]
    return []


def _denied(text: str, start: int) -> bool:
    clause = _CLAUSE_BEFORE.split(text[max(0, start - _NEAR) : start])[-1]
    return _REJECTED_BEFORE.search(clause) is not None


def _rejected(text: str, mark: re.Match[str]) -> bool:
    """Whether the clause around a marked letter says that it is not the choice, or only asks."""
    after = text[mark.end() : mark.end() + _NEAR]
    clause = _CLAUSE_AFTER.split(after, maxsplit=1)[0]
    asked = after[len(clause) :].startswith("?")
    return asked or _denied(text, mark.start()) or _REJECTED_AFTER.match(clause) is not None


def _on_a_line(text: str, options: Options) -> list[tuple[int, frozenset[str]]]:
    """A letter that is a whole line, or heads the first or the last one ('C) Paris'); not one of a list of options."""
    listed = {match["letter"].upper() for match in _LISTED.finditer(text)} & set(options.letters)
    found: list[tuple[int, str]] = []
    at = 0
    for line in text.split("\n"):
        match = _ALONE.fullmatch(line) if len(line) < 40 else None
        if match is None and (at == 0 or at + len(line) == len(text)) and len(listed) < 2:
            match = _HEADED.match(line)
            match = None if match and _REJECTED_AFTER.match(line, match.end("letter")) else match
        if match and match["letter"].upper() in options.letters:
            found.append((at, match["letter"].upper()))
        at += len(line) + 1
    letters = {letter for _, letter in found}
    return [(found[-1][0], frozenset(letters))] if len(letters) == 1 else []


def _letters_at(text: str, at: int, options: Options) -> frozenset[str]:
    """The letters that stand right here, joined by commas, 'or' and 'and'; none when a word does."""
    found: set[str] = set()
    at = _after(_WORD, text, _after(_LEAD, text, at))
    sure = "BCDEFGHJKLMNOPQRSTUVWXYZ"
    while (match := _LETTER.match(text, at)) and match["letter"].upper() in options.letters:
        bracketed = set(match["close"]) & set(")]}*\"'")
        if not (bracketed or match["letter"] in sure or _ENDED.match(text, match.end())):
            break
        found.add(match["letter"].upper())
        joined = _NEXT.match(text, match.end())
        if joined is None or (joined["glued"] is not None and not bracketed):
            break
        # 'B or A' chooses A as well; what follows 'B, ' may be the next clause.
        sure = "" if joined["loose"] else "ABCDEFGHJKLMNOPQRSTUVWXYZ"
        at = _after(_WORD, text, joined.end())
    return frozenset(found)


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
