"""A plain verdict on what a model's samples would teach: counts in, one text and a level out. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Level = Literal["good", "fair", "bad"]
TROUBLE = 0.2
"""Share of completions above which a verifier's trouble is what matters most."""
FEW_TEACH = 0.2
"""Below this share of mixed groups most of the sampling is for nothing (DAPO samples again for this reason)."""
MANY_TEACH = 0.4
MOSTLY = 3
"""So many times more dead groups of one kind than of the other are mostly of that kind."""
Z = 1.96


@dataclass(frozen=True)
class Trouble:
    """A verifier that could not judge `share` of the completions, in the words of its most frequent reason."""

    label: str
    share: float
    reason: str
    abstained: bool


@dataclass(frozen=True)
class Counts:
    """Groups by kind; `unjudged` have fewer than two scored completions."""

    mixed: int
    all_good: int
    all_bad: int
    unjudged: int

    @property
    def judged(self) -> int:
        return self.mixed + self.all_good + self.all_bad


def wilson(found: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson, 1927); 0 to 1 where nothing was counted."""
    if of == 0:
        return 0.0, 1.0
    share, spread = found / of, Z * Z / of
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / of + spread / (4 * of)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def verdict_of(counts: Counts, troubles: Sequence[Trouble], flat: Sequence[str]) -> tuple[str, Level]:
    """The verdict and its level.

    Args:
        flat: labels of verifiers that read the gold and gave every completion the same score, with that score.
    """
    grave = max((trouble for trouble in troubles if trouble.share > TROUBLE), key=lambda t: t.share, default=None)
    if grave is not None:
        return _troubled(grave), "bad"
    if counts.judged == 0:
        return "no group has two completions that were judged, so nothing can be said; sample more of them", "bad"
    text, level = _of_groups(counts)
    if flat and counts.mixed:
        text += f". {' and '.join(flat)}: what the groups differ in is not the answer"
        level = "bad" if level == "bad" else "fair"
    return text, level


def _troubled(trouble: Trouble) -> str:
    what = "cannot judge" if trouble.abstained else "fails on"
    reason = f": {trouble.reason}" if trouble.reason else ""
    return f"{trouble.label} {what} {percent(trouble.share)} of the completions{reason}; mend this before a run"


def _of_groups(counts: Counts) -> tuple[str, Level]:
    low, high = wilson(counts.mixed, counts.judged)
    range_text = f"between {low:.0%} and {high:.0%}".replace("%", " %")
    teach, dead = percent(counts.mixed / counts.judged), percent(1 - counts.mixed / counts.judged)
    if high < FEW_TEACH or (counts.mixed == 0 and counts.judged >= 8):
        return f"{dead} of groups would teach nothing: {_why(counts)}", "bad"
    if low >= MANY_TEACH:
        return f"{teach} of groups would teach something ({range_text}): a good match of model and task", "good"
    if high - low > 0.5:
        return (
            f"too few samples to tell: in {counts.judged} groups {counts.mixed} would teach something, which may mean "
            f"anything {range_text} of all; sample more prompts",
            "fair",
        )
    if counts.mixed / counts.judged < FEW_TEACH:
        return f"{dead} of groups would probably teach nothing (of all, {range_text} teach): {_why(counts)}", "fair"
    return (
        f"{teach} of groups would teach something ({range_text}): it can work, but {dead} of the sampling is for "
        f"nothing; those groups are {_lean(counts)}",
        "fair",
    )


def _lean(counts: Counts) -> str:
    if counts.all_bad >= MOSTLY * counts.all_good:
        return "all bad, so the task is rather hard for this model"
    if counts.all_good >= MOSTLY * counts.all_bad:
        return "all good, so the task is rather easy for this model"
    return "some all good and some all bad, so a filtered data set or larger groups would help"


def _why(counts: Counts) -> str:
    if counts.all_bad >= MOSTLY * counts.all_good:
        return "the task is too hard for this model; fine-tune on examples first or choose an easier task"
    if counts.all_good >= MOSTLY * counts.all_bad:
        return "the task is too easy for this model; choose a harder one or a reward that asks for more"
    return (
        f"of the dead groups {counts.all_good} are all good and {counts.all_bad} all bad, so some questions are too "
        "easy and others too hard; filter the data set, or use larger groups"
    )


def percent(share: float) -> str:
    """A share for people. What is not all or nothing is not called 100 % or 0 %."""
    shown = round(100 * share)
    if share > 0 and shown == 0:
        return "under 1 %"
    return "over 99 %" if share < 1 and shown == 100 else f"{shown} %"
