"""The code that a completion submits."""

from __future__ import annotations

import re
import textwrap
from functools import lru_cache

from grpo_studio.verifiers.answer_text import after_thinking

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*")
_LABELS = frozenset({"py", "python", "python3", "python2", "py3", "{.python}"})
_STRING = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")
# `def f`, `class C`, `x = 1` and `x: int = 1` where a statement begins.
_DEFINED = re.compile(r"^[ \t]*(?:(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|(\w+)[ \t]*(?::[^=\n]{1,80})?=(?!=))", re.M)
# What else names a value of the tests' own: `for x, y in`, `with f() as x`, `x, y = 1, 2` and `f(x=1)`.
_BOUND = re.compile(
    r"\bfor[ \t]+([\w, \t()]{1,80}?)[ \t]+in\b|\bas[ \t]+(\w+)|\b((?:\w+[ \t]*,[ \t]*){0,9}\w+)[ \t]*=(?!=)"
)
_FUNCTION = re.compile(r"^[ \t]*(?:async[ \t]+)?def\b", re.MULTILINE)
_OF_ANY_NAME = re.compile(r"\bdef[ \t]+check[ \t]*\(")


def submitted_code(completion: str, tests: str = "", entry: str | None = None) -> str:
    """The last fenced Python block after the thinking, or all of the text when nothing is fenced; else empty.

    A block without a label, which may show output, counts only where none is labelled as Python. With `tests`, the last
    block of either kind that defines a name which they use goes before one that only shows how to call it. A last fence
    that is never closed counts, since a completion may be cut off right after its code.
    """
    said = after_thinking(completion)
    if said is None:
        return ""
    blocks = _blocks(said)
    if not blocks:
        return textwrap.dedent(said).strip("\n")
    python = [text for label, text in blocks if label in _LABELS]
    plain = [text for label, text in blocks if not label]
    if tests:
        defining = [text for label, text in blocks if not label or label in _LABELS]
        python = [text for text in defining if _defines(text, tests, entry)] or python
    return textwrap.dedent((python or plain or [""])[-1])


def _blocks(text: str) -> list[tuple[str, str]]:
    """Each fenced block, with its label in small letters."""
    blocks: list[tuple[str, str]] = []
    lines: list[str] = []
    fence = label = ""
    for line in text.splitlines():
        found = _FENCE.fullmatch(line)
        if not fence and found:
            fence, label, lines = found[1], found[2].lower(), []
        elif fence and found and not found[2] and found[1].startswith(fence):
            blocks.append((label, "\n".join(lines)))
            fence = ""
        elif fence:
            lines.append(line)
    if fence:
        blocks.append((label, "\n".join(lines)))
    return blocks


def _defines(code: str, tests: str, entry: str | None) -> bool:
    if entry is None and _OF_ANY_NAME.search(tests) and _FUNCTION.search(code):
        return True  # they take the last function
    return not _defined(code).isdisjoint(_used(tests) if entry is None else _used(tests) | {entry})


@lru_cache(maxsize=512)  # a whole group of completions shares its tests
def _used(tests: str) -> frozenset[str]:
    """The names that tests use and do not define. By their looks: nothing is parsed here that nobody vouches for."""
    plain = _STRING.sub("''", tests)
    bound = (name for groups in _BOUND.findall(plain) for part in groups for name in _NAME.findall(part))
    return frozenset(_NAME.findall(plain)) - _defined(plain) - frozenset(bound)


def _defined(code: str) -> frozenset[str]:
    return frozenset(one or other for one, other in _DEFINED.findall(code))
