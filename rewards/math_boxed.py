"""The last box of a completion against the gold, as an exact number or as normalised text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.answer_text import after_thinking, inside_answer_tags, last_box, last_statement, normalise
from grpo_studio.verifiers.gold import accepted_golds
from grpo_studio.verifiers.numbers import Number, equal, last_reading, readings
from grpo_studio.verifiers.unit_text import UNIT, changes, unit_name

_LONGEST = 2_000
_REACH = 300  # of the end of a text, for an answer without a digit
_DELIMITERS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("`", "`"), ("{", "}"))
_ANSWER_TAG = re.compile(r"</?answer>", re.IGNORECASE)
_TEXT_COMMAND = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mbox|operatorname)\s?\{([^{}]*)\}")
_LAYOUT = re.compile(r"\\(?:left|right|displaystyle|limits)(?![A-Za-z])")
_SPACE = re.compile(r"(?<!\\)\\(?:(?:quad|qquad)(?![A-Za-z])|[,;:! ])|~")
_SPELLINGS = {"π": r"\pi", "∞": r"\infty", r"\%": "%", r"\$": "$"}
_SPELLING = re.compile(r"π|∞|\\%|\\\$")
_SHORT_FRACTION = re.compile(r"\\[dtc]?frac\s?([0-9])\s?([0-9])")
_LONG_FRACTION = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_NEEDLESS_BRACES = re.compile(r"([\^_]|\\sqrt)\{([0-9A-Za-z])\}")
_DEGREES = re.compile(r"\^\s?\{?\s?\\circ\s?\}?|\\degree(?![A-Za-z])")
_LABEL = re.compile(r"\s*(\\?[A-Za-z]+(?:_\{?[0-9A-Za-z]\}?)?|\x00[^\x00]*\x00)\s*=(?!=)")
_SPACED_MINUS = re.compile(r"\s*-\s+(?=[0-9.\\])")
_BEFORE = re.compile(r"\s*[+(]?\s*[$€£¥₹₩]?\s*")
_CURRENCY = re.compile(r"[$€£¥₹₩¢]")
_DOLLARS = re.compile(r"[\s+(-]*\$[^$]*|[^$]*[0-9]\s*\$")  # one that is an amount's, not one of two around a formula
_PRODUCT_BEFORE = re.compile(r"[A-Za-z)}]\s*[-+*/^_]\s*\Z")
_PRODUCT_AFTER = re.compile(r"\s*[-+*^]\s*\\?[A-Za-z](?![A-Za-z])|\s*,?\s*or\s+-?[$]?[0-9]")
_PHRASE = re.compile(
    r"\banswer[*_`\"')\]]{0,4}\s{0,3}(?:[:=]|(?:is|should be|would be|must be)\b)[*_`:\s]{0,12}"
    r"((?:(?![.!?]\s)[^\n0-9]){1,200})\Z",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^\W\d_]{2,}(?:[ '-][^\W\d_]+)*")


class _Answer(NamedTuple):
    """An answer as it is compared: its text without layout, and its number when it is one, with label and unit."""

    text: str
    number: Number | None
    label: str
    unit: str


def ideal(answer: Any, **_: Any) -> str | None:
    """The gold in a box."""
    golds = _golds(answer)
    return None if isinstance(golds, str) else f"\\boxed{{{golds[0][0]}}}"


@verifier(
    examples=[
        ("So it is \\boxed{12}.", {"answer": "12"}, 1.0),
        ("\\boxed{11}, no: \\boxed{\\frac{3}{8}}", {"answer": "0.375"}, 1.0),
        ("<think>\\boxed{12}</think> I do not know.", {"answer": "12"}, 0.0),
        ("The answer is 12.", {"answer": "12"}, 0.0),
        ("The answer is 12.", {"answer": "12", "strict": False}, 1.0),
        ("\\boxed{\\text{no solution}}", {"answer": ["none", "No solution"]}, 1.0),
        ("\\boxed{12", {"answer": 12}, 0.0),
        ("\\boxed{4}", {"answer": ""}, None),
    ],
    ideal=ideal,
)
def math_boxed(completion: str, answer: Any, *, strict: bool = True) -> Verdict:
    """The last box holds the gold answer: 1 or 0.

    Only a box after the thinking part counts, `\\boxed{...}`, `\\fbox{...}` or `\\boxed 7`; one that never closes is
    no answer. `strict=False` reads a completion without any box like `math_numeric` does. Equal is: the same exact
    number (`0.375` is `\\frac38`; a unit, a percent sign or `x =` may be left out, not exchanged), or the same text
    without layout. It does no algebra: for `\\sqrt{8}` and `2\\sqrt{2}`, sets or intervals use `math_equal`.
    """
    golds = _golds(answer)
    if isinstance(golds, str):
        return Verdict(None, golds)
    text = after_thinking(normalise(completion))
    if text is None:
        return Verdict(0.0, "the thinking never ends")
    box = last_box(text)
    if box is None and strict:
        return Verdict(0.0, "no box")
    found = (box[1] if box else _unboxed(text)) or ""
    if not found.strip():
        return Verdict(0.0, "the box is empty or never closes" if box else "no answer")
    if len(found) > _LONGEST:
        return Verdict(0.0, f"an answer of over {_LONGEST} characters")
    given = _read(found)
    if any(_same(given, gold) for _, gold in golds):
        return Verdict(1.0, "", found)
    return Verdict(0.0, f"{found:.60} is not {golds[0][0]:.60}", found)


def _unboxed(text: str) -> str:
    """The stated answer of a text without a box: its answer tags, its statement, its last number, or all of it."""
    inside = inside_answer_tags(text)
    if statement := last_statement(inside):
        found = readings(statement.text, stated=True)
        whole = not found or found[0].number is None or _is_term(found[0].text, statement.text)
        return statement.text if whole else found[0].text
    if phrase := _PHRASE.search(inside.rstrip()[-_REACH:]):  # the last that is said, and without a digit
        return phrase[1]
    last = last_reading(inside) if inside is text else None
    return last.text if last else inside


def _is_term(number: str, text: str) -> bool:
    """Whether a number is one term of a formula (`x + 1`), or one of two ('5 or 6')."""
    before, _, after = text.partition(number)
    return _PRODUCT_BEFORE.search(before) is not None or _PRODUCT_AFTER.match(after) is not None


def _golds(answer: Any) -> list[tuple[str, _Answer]] | str:
    """Each gold as it can be put in a box, and as it is compared; or why there is none."""
    texts = accepted_golds(answer)
    if isinstance(texts, str):
        return texts
    golds = [gold for text in texts if (gold := _gold(text)) is not None]
    return golds or f"the gold answer has no text, or a brace that never closes: {answer!r:.100}"


@lru_cache(maxsize=1024)  # a whole group of completions shares its gold
def _gold(answer: str) -> tuple[str, _Answer] | None:
    """A gold may be a whole worked solution: then its box, or what follows its last marker, is the answer."""
    text = normalise(answer)
    if box := last_box(text):
        text = box[1] or ""
    elif "####" in text:
        text = text.rpartition("####")[2]
    text = text.strip()
    if len(text) > _LONGEST or last_box(f"\\boxed{{{text}}}") != (0, text):
        return None
    read = _read(text)
    return (text, read) if read.text else None


def _same(given: _Answer, gold: _Answer) -> bool:
    if given.number is None or gold.number is None:
        return given.text == gold.text
    pairs = ((given.label, gold.label), (given.unit, gold.unit))
    return equal(given.number, gold.number) and all(a == b or not a or not b for a, b in pairs)


def _read(text: str) -> _Answer:
    text = _DEGREES.sub("°", _ANSWER_TAG.sub(" ", text))
    text = _SPACE.sub(" ", _LAYOUT.sub("", _undelimited(text)))
    text = _SPELLING.sub(lambda match: _SPELLINGS[match[0]], text)
    # First the commands around others, then those with words only: what they hold may be a unit or a label.
    text = _undelimited(_TEXT_COMMAND.sub(lambda match: match[1] if "\\" in match[1] else match[0], text))
    marked = _TEXT_COMMAND.sub(lambda match: match[1] if re.search(r"\d", match[1]) else f"\x00{match[1]}\x00", text)
    marked = marked if _DOLLARS.fullmatch(marked) else marked.replace("$", "")
    return _Answer(_plain(_undelimited(_TEXT_COMMAND.sub(r"\1", text.replace("$", "")))), *_number(marked))


def _undelimited(text: str) -> str:
    """The text without the full stop, the comma and the dollar signs or stars around it."""
    before = None
    while text != before:
        before, text = text, text.strip().rstrip(".,;。")
        for left, right in _DELIMITERS:
            inner = text[len(left) : -len(right)]
            if text == left + inner + right and (left != "{" or not {"{", "}"} & set(inner)):
                text = inner
    return text


def _plain(text: str) -> str:
    """One spelling of a text without layout. Spaces count between words and between digits."""
    words = " ".join(text.split())
    if _WORDS.fullmatch(words):
        return words.casefold()
    text = _LONG_FRACTION.sub(r"\\frac", _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", text))
    text = re.sub(r"(?<![0-9])\s+|\s+(?![0-9])", "", text)
    text = _NEEDLESS_BRACES.sub(r"\1\2", text)
    return text[1:-1] if re.fullmatch(r"\([A-Za-z]\)", text) else text


def _number(text: str) -> tuple[Number | None, str, str]:
    """The number that is all of `text`, with its label (`x =`) and its unit; None when there is anything else."""
    label = _LABEL.match(text)
    rest = text[label.end() :] if label else text
    rest = f"-{rest[minus.end() :]}" if (minus := _SPACED_MINUS.match(rest)) else rest
    found = readings(rest)
    if len(found) != 1 or found[0].number is None:
        return None, "", ""
    before, _, after = rest.partition(found[0].text)
    unit = UNIT.fullmatch(after.removesuffix(")").rstrip())
    if not _BEFORE.fullmatch(before) or unit is None or changes(unit[0].replace("\x00", " ")):
        return None, "", ""
    currency = _CURRENCY.search(before + found[0].text)
    name = unit_name(re.sub(r"[\x00\s{}]", "", unit[0]) or (currency[0] if currency else ""))
    return found[0].number, label[1].strip("\x00 ") if label else "", name
