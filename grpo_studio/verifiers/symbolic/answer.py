"""An answer as it is compared: its text, its option letter, its words, and its trees. Readings are cached."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from grpo_studio.verifiers.symbolic import words
from grpo_studio.verifiers.symbolic.clean import clean, option, phrase, plain
from grpo_studio.verifiers.symbolic.grammar import parse
from grpo_studio.verifiers.symbolic.tree import Node, UnreadableError, number

LONGEST = 2000
_LONGEST_PHRASE = 30  # words; more are a worked solution or a chat, and no answer
_PLAIN_NUMBER = re.compile(r"-?(?:\d{1,14}|\d{1,7}\.\d{1,7})")
_LETTERS = re.compile(r"[A-Za-z]+")
_WORDY = re.compile(r"[^\W\d_]{3}")
_MATHEMATICAL = re.compile(r"[\\^_=<>≤≥+*/|{}\[\]]")
_BRACES = re.compile(r"\\.|[{}]")
_READABLE = re.compile(r"[^\W_]|∞|∅")


@dataclass(frozen=True)
class Answer:
    """One answer. `trees` are its readings (two when `a/bc` leaves a choice), none when it is not mathematics.

    `words` is set for an answer in words; `beside` is what an option's letter stands beside.
    """

    text: str
    plain: str = ""
    trees: tuple[Node, ...] = ()
    letter: str | None = None
    beside: str = ""
    words: str | None = None
    problem: str = ""

    @property
    def readable(self) -> bool:
        """Whether there is anything that another answer could be compared with."""
        return not self.problem


@lru_cache(maxsize=4096)
def read_answer(text: str) -> Answer:
    """The answer that this text is; `problem` says why it is none. Never raises."""
    if _PLAIN_NUMBER.fullmatch(text):
        return Answer(text, text, (number(Fraction(text)),))
    if len(text) > LONGEST:
        return Answer(text[:LONGEST], problem=f"longer than {LONGEST} characters")
    cleaned = clean(text)
    if not _READABLE.search(cleaned) and cleaned not in (r"\emptyset", r"\{\}", "{}"):
        return Answer(cleaned, problem="nothing to compare")
    if _unbalanced(cleaned):
        return Answer(cleaned, problem="its braces do not match")
    short = plain(cleaned)
    letter, beside = option(short)
    trees, said = _meaning(cleaned, short)
    prose = not (trees or said or letter) and len(cleaned.split()) > _LONGEST_PHRASE
    problem = "prose without a marked answer" if prose else ""
    return Answer(cleaned, short, trees, letter, beside, said, problem)


def _meaning(cleaned: str, short: str) -> tuple[tuple[Node, ...], str | None]:
    """The trees of an answer, or its words."""
    wordy = bool(_WORDY.search(short)) or short.lower() in ("no", "yes")
    said = phrase(short) if wordy and not _MATHEMATICAL.search(short) else None
    if said in words.EMPTY_PHRASES:
        return (Node("const", name="empty"),), None
    if said in words.EVERY_PHRASES:
        return (Node("const", name="reals"),), None
    if said is not None and len(said.split()) > _LONGEST_PHRASE:
        said = None
    elif said is not None and not any(character.isdigit() for character in said) and not _all_known(said):
        return (), said
    try:
        tree, ambiguous = parse(cleaned)
        trees = (tree, parse(cleaned, tight=False)[0]) if ambiguous else (tree,)
    except (UnreadableError, ArithmeticError, RecursionError):
        return (), said
    return trees, None


def _all_known(said: str) -> bool:
    """Whether each word is mathematics: 'sin x', 'four', 'negative infinity' is not."""
    known = (
        words.FUNCTIONS | words.GREEK | words.CONSTANTS.keys() | words.NUMBER_WORDS.keys() | words.SCALE_WORDS.keys()
    )
    return all(len(word) == 1 or word in known | words.SEPARATORS for word in _LETTERS.findall(said))


def _unbalanced(cleaned: str) -> bool:
    """Whether a brace is left open, or closes nothing."""
    if "{" not in cleaned and "}" not in cleaned:
        return False
    depth = 0
    for mark in _BRACES.findall(cleaned):
        depth += {"{": 1, "}": -1}.get(mark, 0)
        if depth < 0:
            return True
    return depth > 0
