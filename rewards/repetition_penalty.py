"""A penalty for saying the same thing again and again."""

from __future__ import annotations

import re

from grpo_studio.verifiers import Verdict, verifier

_LONGEST_WORD = 40
# Scripts that write no spaces (Thai to Khmer, kana, Han) count by character; Hangul does too, having short words.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_PIECE = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w){{1,{_LONGEST_WORD}}}+(?!\w)|\w|[^\w\s]")


def check(ngram: int, max_penalty: float) -> str | None:
    """The n-gram has a length and the penalty does not reward."""
    if not 1 <= ngram <= 100:
        return f"ngram is {ngram}; it must be from 1 to 100, such as 4"
    return None if max_penalty <= 0 else f"max_penalty is {max_penalty}; it must be 0 or negative, such as -1"


@verifier(
    examples=[
        ("The cat sat on the mat and looked at the moon.", {}, 0.0),
        ("a b a b a b", {"ngram": 2}, -0.6),
        ("我不知道我不知道我不知道", {"ngram": 4, "max_penalty": -0.9}, -0.5),
        ("No.", {}, 0.0),
        ("", {}, 0.0),
    ],
    check=check,
)
def repetition_penalty(completion: str, *, ngram: int = 4, max_penalty: float = -1.0) -> Verdict:
    """`max_penalty` times the share of n-grams that the text has already used: from `max_penalty` to 0.

    An n-gram is a run of `ngram` words, case ignored; a mark counts as a word, and so does each character of a script
    written without spaces (Chinese, Japanese, Thai) or of a word over 40 characters. The share is
    1 - distinct / all, so a text of at most `ngram` words has none.
    """
    words = _PIECE.findall(completion.lower())
    total = len(words) - ngram + 1
    if total < 2:
        return Verdict(0.0, f"fewer than two runs of {ngram} words")
    distinct = len(set(zip(*(words[start:] for start in range(ngram)), strict=False)))
    share = 1 - distinct / total
    return Verdict(max_penalty * share if share else 0.0, f"{total - distinct} of {total} {ngram}-grams are repeats")
