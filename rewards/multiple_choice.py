"""The letter that a completion chooses against the gold option."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any, Literal

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.answer_text import after_thinking, inside_answer_tags, normalise
from grpo_studio.verifiers.choices import Options, chosen, plain, stated, unwrapped
from grpo_studio.verifiers.gold import accepted_golds

_GOLD = re.compile(
    r"(?:(?:option|choice|answer)\s)?[(\[*\s]*(?P<letter>[A-Za-z])(?:[)\].:*\s]*|[)\].:]\s.*)",
    re.DOTALL | re.IGNORECASE,
)


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
    no letters; several letters chosen are no answer, nor is one that is rejected ('(A) is wrong'). Where the data has
    the options in a column `choices` (a list, or label and text), an option's text counts as its letter.

    The gold is a letter, an option's text, a text that states one (`\\boxed{C}`, 'The answer is C'), or a number: an
    index that counts from `first` (0: as in MMLU, 0 is A). `options`: how many there are where the data does not say.
    """
    offered = _offered(choices, options)
    golds = offered if isinstance(offered, str) else _gold_letters(answer, offered, first)
    if isinstance(offered, str) or isinstance(golds, str):
        return Verdict(None, str(golds))
    text = after_thinking(normalise(completion))
    if text is None:
        return Verdict(0.0, "the thinking never ends")
    letters = chosen(inside_answer_tags(text), offered)
    if len(letters) != 1:
        reason = "several options chosen" if letters else "no option chosen"
        return Verdict(0.0, reason, ", ".join(sorted(letters)) or None)
    [letter] = letters
    right = letter in golds
    return Verdict(float(right), "" if right else f"{letter} is not {' or '.join(sorted(golds))}", letter)


def _offered(choices: Any, count: int) -> Options | str:
    """The options of this row, or why its column cannot be read."""
    if choices is None:
        return Options(ascii_uppercase[:count])
    labels: Sequence[Any] = ()
    if isinstance(choices, Mapping):
        if "text" in choices:
            choices, labels = choices["text"], choices.get("label") or ()
        else:
            choices, labels = list(choices.values()), list(choices)
    if not isinstance(choices, (list, tuple)) or not 2 <= len(choices) <= 26:
        return f"the choices are not a list of 2 to 26 options: {choices!r:.100}"
    texts = tuple(plain(str(choice)) for choice in choices)
    return Options(ascii_uppercase[: len(texts)], texts, tuple(str(label).strip() for label in labels))


def _gold_letters(answer: Any, options: Options, first: int) -> frozenset[str] | str:
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


def _named(text: str, options: Options) -> frozenset[str]:
    """The options that a gold text can mean: by label, by letter, by text, or by stating one."""
    if text in options.labels:
        return frozenset(options.letters[options.labels.index(text)])
    text = unwrapped(normalise(text)).strip(" $")
    match = _GOLD.fullmatch(text)
    letter = match["letter"].upper() if match else ""
    named = options.named(text) | (frozenset(letter) if letter and letter in options.letters else frozenset())
    return named or stated(text, options)
