"""What a group can teach: the one rule for mixed, all-good and all-bad, used by the trainer and the pages."""

from __future__ import annotations

from typing import Literal

GroupKind = Literal["mixed", "all_good", "all_bad", "unscored"]
EQUAL = 1e-6
"""A deviation below this counts as none: rewards are sums of float32 values."""


def kind_of_group(mean: float | None, deviation: float | None, reachable: float) -> GroupKind:
    """The kind of a group from its rewards' mean and sample deviation.

    A group is dead when all its scored rewards are equal (DAPO, arXiv 2503.14476, section 3.2); then all-good when that
    reward is at least half of `reachable`, the sum of the positive weights, else all-bad. With fewer than two scored
    completions there is no deviation (None): unscored.
    """
    if mean is None or deviation is None:
        return "unscored"
    if deviation > EQUAL:
        return "mixed"
    return "all_good" if reachable > 0 and mean >= reachable / 2 else "all_bad"
