"""The completion is made of the wanted tags, each once, and nothing else."""

from __future__ import annotations

import re
from typing import Any, Literal

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.blank import is_blank, is_space

_NAME = re.compile(r"[^\W\d][\w.:-]{0,63}")


def check(tags: list[str], opened: str) -> str | None:
    """The tags are distinct names without brackets."""
    if not tags:
        return "tags is empty; name at least one, such as think"
    for tag in tags:
        if not isinstance(tag, str) or not _NAME.fullmatch(tag):
            bare = str(tag).strip("</> ")
            hint = f"write {bare!r} without brackets" if _NAME.fullmatch(bare) else "a name begins with a letter"
            return f"{tag!r:.80} is not the name of a tag; {hint}"
    if twice := sorted({tag for tag in tags if tags.count(tag) > 1}):
        return f"the tag {twice[0]!r} is named twice; each tag stands once in a completion"
    return None


def ideal(*, tags: list[str] = ["think", "answer"], opened: str = "either", **columns: Any) -> str:  # noqa: B006
    """The tags in order, with the gold in the last one."""
    filled = [f"<{tag}>\n{columns.get('answer') if tag == tags[-1] else 'text'}\n</{tag}>" for tag in tags]
    text = "\n".join(filled)
    return text.removeprefix(f"<{tags[0]}>") if opened == "yes" else text


@verifier(
    examples=[
        ("<think>\nlong\nwork\n</think>\n<answer>5</answer>", {}, 1.0),
        ("the chain goes on\n</think>\n<answer>5</answer>", {}, 1.0),
        ("the chain goes on\n</think>\n<answer>5</answer>", {"opened": "no"}, 0.0),
        ("<think></think><answer>5</answer>", {}, 0.0),
        ("<answer>5</answer><think>a</think>", {}, 0.0),
        ("<plan>a</plan><code>b</code> done", {"tags": ["plan", "code"]}, 0.0),
    ],
    check=check,
    ideal=ideal,
)
def format_tags(
    completion: str,
    *,
    tags: list[str] = ["think", "answer"],  # noqa: B006 - never changed
    opened: Literal["either", "yes", "no"] = "either",
) -> Verdict:
    """The whole text is the given tags, each once, in order and filled: 1 or 0.

    White space around and inside the tags is free; anything else outside them, an empty tag, a second tag of the same
    name (wherever it stands) or a missing one scores 0. Names are matched exactly, case included.

    `opened`: whether the prompt already ends with the first tag, as some chat templates write it: 'yes' (the completion
    begins inside it), 'no' (it writes the tag itself) or 'either'.
    """
    found = list(re.finditer(f"</?(?:{'|'.join(map(re.escape, tags))})>", completion))
    wanted = [written for tag in tags for written in (f"<{tag}>", f"</{tag}>")]
    written = [match[0] for match in found]
    # Where the text before each tag begins. A first tag that the prompt wrote is one of length 0 at the start.
    inside = opened == "yes" or (opened == "either" and written[:1] != wanted[:1])
    ends = ([0] if inside else []) + [match.end() for match in found]
    starts = ([0] if inside else []) + [match.start() for match in found]
    if (wanted[:1] if inside else []) + written != wanted:
        return Verdict(0.0, _difference(written, wanted[1:] if inside else wanted))
    gaps = [completion[end:start] for end, start in zip([0, *ends], [*starts, len(completion)], strict=True)]
    if inside and _is_near(tags[0], gaps[1]):
        return Verdict(0.0, f"it begins with a tag that is not quite <{tags[0]}>")
    for number, tag in enumerate(tags):
        if is_blank(gaps[2 * number + 1]):
            return Verdict(0.0, f"<{tag}> is empty")
    if not all(is_space(gap) for gap in gaps[::2]):
        return Verdict(0.0, "text outside the tags")
    return Verdict(1.0, "", gaps[-2].strip())


def _difference(written: list[str], wanted: list[str]) -> str:
    for tag in wanted:
        if tag not in written:
            return f"{tag} is missing"
    for tag in written:
        if written.count(tag) > wanted.count(tag):
            return f"{tag} stands {written.count(tag)} times"
    return "the tags are not in order"


def _is_near(tag: str, text: str) -> bool:
    """Whether a text begins with something that was to be this tag: `< think >`, `<Think>`, `[think]`, `<think/>`."""
    name = re.escape(tag) + "(?:ing)?"
    near = rf"[<\uff1c\u2039\u27e8\u3008][\s/|\\*_]*{name}(?!\w)|&lt;\s*{name}(?!\w)|[\[{{(]\s*{name}\s*[\]}})]"
    return re.match(rf"[\s`*\u200b\ufeff]*(?:{near})", text, re.IGNORECASE) is not None
