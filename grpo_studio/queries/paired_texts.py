"""The recorded completions of two runs, letter by letter: the first one that is not the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from grpo_studio.store.reader import RunReader, current

LONGEST_COMPARED = 20_000
"""Characters of a completion that are compared; beyond them its length alone is."""
AROUND = 300
"""Characters shown before and after the place where two texts part."""


@dataclass(frozen=True)
class Excerpt:
    """A completion around the place where it parts from the other: text, where that is in it, how long the whole is.

    `at` counts characters of `text`; `begins` is where `text` begins in the whole.
    """

    completion: int
    text: str
    at: int
    begins: int
    length: int
    tokens: int


@dataclass(frozen=True)
class FirstDifference:
    """The first step whose recorded groups are not the same in both runs.

    Args:
        kind: completions: the same prompts were answered otherwise; prompts: others were asked; size: the groups have
            another size.
        group, place: which group of the step, and which completion of it, from 1.
        sides: both texts, for completions.
    """

    step: int
    kind: Literal["completions", "prompts", "size"]
    group: int
    place: int = 0
    prompt: str = ""
    sides: tuple[Excerpt, Excerpt] | None = None


Group = tuple[str, list[tuple[Any, ...]]]
"""A prompt, and (id, tokens, text, length) of each of its completions in their order."""


def completions_at(reader: RunReader, step: int) -> int:
    """How many completions a step has."""
    found = reader.rows(
        "SELECT count(*) FROM prompt_group g CROSS JOIN completion c ON c.group_id = g.id "
        f"WHERE g.split = 'train' AND g.step = ? AND {current(reader, 'g')}",
        (step,),
    )
    return int(found[0][0])


def groups_between(reader: RunReader, first: int, last: int) -> dict[int, list[Group]]:
    """The training groups of some steps, in the order in which they were recorded."""
    rows = reader.rows(
        "SELECT g.step, g.id, substr(g.prompt, 1, ?), c.id, c.tokens, substr(c.text, 1, ?), length(c.text) "
        "FROM prompt_group g CROSS JOIN completion c ON c.group_id = g.id "
        f"WHERE g.split = 'train' AND g.step BETWEEN ? AND ? AND {current(reader, 'g')} ORDER BY g.step, g.id, c.idx",
        (LONGEST_COMPARED, LONGEST_COMPARED, first, last),
    )
    found: dict[int, dict[int, Group]] = {}
    for step, group, prompt, *completion in rows:
        found.setdefault(step, {}).setdefault(group, (prompt, []))[1].append(tuple(completion))
    return {step: list(groups.values()) for step, groups in found.items()}


def in_both(a: dict[int, list[Group]], b: dict[int, list[Group]]) -> Iterator[tuple[int, list[Group], list[Group]]]:
    """The steps that sampled in both runs; with several iterations a batch not every step does."""
    for step in sorted(set(a) & set(b)):
        yield step, a[step], b[step]


def first_difference(step: int, a: list[Group], b: list[Group]) -> FirstDifference | None:
    """Where the groups of a step are not the same in both; None when they are."""
    for number, ((prompt, left), (other, right)) in enumerate(zip(a, b, strict=False), start=1):
        if prompt != other:
            return FirstDifference(step, "prompts", number)
        for place, (one, two) in enumerate(zip(left, right, strict=False), start=1):
            if one[2:] != two[2:]:
                return FirstDifference(step, "completions", number, place, prompt[:AROUND], _excerpts(one, two))
        if len(left) != len(right):
            return FirstDifference(step, "size", number)
    return FirstDifference(step, "size", min(len(a), len(b))) if len(a) != len(b) else None


def _excerpts(one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Excerpt, Excerpt]:
    texts = (str(one[2]), str(two[2]))
    pairs = enumerate(zip(*texts, strict=False))
    at = next((place for place, (left, right) in pairs if left != right), min(map(len, texts)))
    begins = max(0, at - AROUND)
    a, b = (
        Excerpt(row[0], text[begins : at + AROUND], at - begins, begins, row[3], row[1])
        for row, text in zip((one, two), texts, strict=True)
    )
    return a, b
