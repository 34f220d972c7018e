"""The code that a completion submits."""

from __future__ import annotations

import re
import textwrap

from grpo_studio.verifiers.answer_text import after_thinking

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*")
_LABELS = frozenset({"", "py", "python", "python3", "python2", "py3", "{.python}"})


def submitted_code(completion: str) -> str:
    """The last fenced Python block after the thinking, or all of the text when nothing is fenced; else empty.

    A last fence that is never closed counts, since a completion may be cut off right after its code.
    """
    said = after_thinking(completion)
    if said is None:
        return ""
    blocks, fenced = [], False
    lines: list[str] = []
    fence = label = ""
    for line in said.splitlines():
        found = _FENCE.fullmatch(line)
        if not fence and found:
            fence, label, lines, fenced = found[1], found[2].lower(), [], True
        elif fence and found and not found[2] and found[1].startswith(fence):
            blocks.append((label, "\n".join(lines)))
            fence = ""
        elif fence:
            lines.append(line)
    if fence:
        blocks.append((label, "\n".join(lines)))
    python = [text for name, text in blocks if name in _LABELS]
    if python:
        return textwrap.dedent(python[-1])
    return "" if fenced else textwrap.dedent(said).strip("\n")
