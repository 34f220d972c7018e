"""The whole answer of a completion against the gold text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.answer_text import after_thinking, inside_answer_tags, last_box, normalise
from grpo_studio.verifiers.gold import accepted_golds

_TEXT_COMMAND = re.compile(r"\\(?:text|textbf|mathrm|mbox)\s?\{([^{}]*)\}")
_AROUND = (("**", "**"), ("*", "*"), ("`", "`"), ('"', '"'), ("'", "'"), ("“", "”"), ("\u2018", "\u2019"))
_LAYERS = 6  # of marks around an answer; it keeps a text of nothing else from being slow
_AFTER_WORD = re.compile(r"(?<=[^\W\d_])[!?]{1,9}\Z")  # not after a digit: 5! is a factorial


def ideal(answer: Any, **params: Any) -> str | None:
    """The first gold that is read back as itself."""
    golds = _golds(answer, **params)
    return None if isinstance(golds, str) else golds[0][0]


@verifier(
    examples=[
        ("Paris", {"answer": "Paris"}, 1.0),
        ("<think>Paris or Lyon?</think>\n<answer>Lyon.</answer>", {"answer": ["Lyon", "Lyons"]}, 1.0),
        ("The capital is Paris", {"answer": "Paris"}, 0.0),
        ("paris", {"answer": "Paris"}, 0.0),
        ("paris", {"answer": "Paris", "ignore_case": True}, 1.0),
        ("", {"answer": "Paris"}, 0.0),
        ("Paris", {"answer": None}, None),
    ],
    ideal=ideal,
)
def exact_match(
    completion: str,
    answer: Any,
    *,
    ignore_case: bool = False,
    ignore_space: bool = False,
    strip_punctuation: bool = True,
) -> Verdict:
    """The whole answer is the gold text, to the letter: 1 or 0.

    The answer is what follows the thinking part, of that what `<answer>` tags hold, and of that what the last box
    holds, when there are any; a gold that is only part of it does not count. On both sides look-alike characters
    (full-width, non-breaking, kinds of dashes) are one, and white space counts once. `strip_punctuation` drops a full
    stop, comma or colon at the end, and quotes or Markdown marks around the whole. It compares text: for
    numbers, where 4.0 is 4, use `math_numeric`.
    """
    options = {"ignore_case": ignore_case, "ignore_space": ignore_space, "strip_punctuation": strip_punctuation}
    golds = _golds(answer, **options)
    if isinstance(golds, str):
        return Verdict(None, golds)
    found = _answer(completion)
    if found is None:
        return Verdict(0.0, "the thinking or a box never ends")
    given = _comparable(found, **options)
    if not given:
        return Verdict(0.0, "no answer")
    if any(given == gold for _, gold in golds):
        return Verdict(1.0, "", found)
    return Verdict(0.0, f"{found:.60} is not {golds[0][0]:.60}", found)


def _answer(text: str) -> str | None:
    after = after_thinking(normalise(text))
    if after is None:
        return None
    inside = inside_answer_tags(after)
    box = last_box(inside)
    return (inside if box is None else _TEXT_COMMAND.sub(r"\1", box[1] or "")).strip()


def _golds(answer: Any, **options: bool) -> list[tuple[str, str]] | str:
    """Each gold as it was written, and as it is compared; or why there is none."""
    texts = accepted_golds(answer)
    if isinstance(texts, str):
        return texts
    golds = [(text, gold) for text in texts if (gold := _gold(text, **options))]
    return golds or f"the gold answer holds nothing to compare: {answer!r:.100}"


@lru_cache(maxsize=1024)  # a whole group of completions shares its gold
def _gold(text: str, **options: bool) -> str:
    # A gold may stand in a box or in tags as well: it is read as the completion is.
    found = _answer(text)
    return _comparable(found, **options) if found else ""


def _comparable(text: str, *, ignore_case: bool, ignore_space: bool, strip_punctuation: bool) -> str:
    text = " ".join(text.split())
    if strip_punctuation:
        text = _stripped(text) or text
    if ignore_space:
        text = text.replace(" ", "")
    return text.casefold() if ignore_case else text


def _stripped(text: str) -> str:
    for _ in range(_LAYERS):
        text = _AFTER_WORD.sub("", text.rstrip(".,;:。")).strip()
        for left, right in _AROUND:
            if text.startswith(left) and text.endswith(right):
                text = text[len(left) : -len(right)]
    return text
