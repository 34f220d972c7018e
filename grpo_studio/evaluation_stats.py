"""What scores of held-out rows are worth: intervals, pass@k, paired differences, flips. Pure; None never counts.

Rows are the units: they are taken as drawn at random from all rows that there could be, and completions of one row as
belonging together (Miller, arXiv 2411.00640, sections 2 and 4).
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LEVEL = 0.95
Z = statistics.NormalDist().inv_cdf((1 + LEVEL) / 2)
EXACT_T = 400
"""Degrees of freedom up to which Student's t is computed exactly; from there on an expansion is as good as it."""


@dataclass(frozen=True)
class Estimate:
    """A figure over `rows` rows with its 95 % interval; `left_out` rows had no value.

    `value` is None without rows; `low` and `high` are None where no interval can be told from these rows.
    """

    value: float | None
    low: float | None
    high: float | None
    rows: int
    left_out: int = 0


@dataclass(frozen=True)
class Flips:
    """Rows judged in both of two evaluations: how often each pair of outcomes came.

    `p` is McNemar's exact two-sided p: how likely flips this uneven are when either way is as likely (McNemar,
    Psychometrika 12, 1947; the exact form is the sign test on the rows that flipped). None when none flipped.
    """

    gained: int
    lost: int
    both_right: int
    both_wrong: int

    @property
    def p(self) -> float | None:
        return sign_test(self.gained, self.lost)


def mean_interval(values: Iterable[float | None]) -> Estimate:
    """Mean with Student's t interval; no interval of one row, or where all are equal: the spread is then unknown."""
    known, left_out = _known(values)
    if not known:
        return Estimate(None, None, None, 0, left_out)
    mean = statistics.fmean(known)
    if len(known) == 1 or max(known) == min(known):
        return Estimate(mean, None, None, len(known), left_out)
    half = t_quantile(len(known) - 1) * statistics.stdev(known) / math.sqrt(len(known))
    return Estimate(mean, mean - half, mean + half, len(known), left_out)


def share_interval(outcomes: Iterable[bool | None]) -> Estimate:
    """Share of True with Wilson's score interval (Wilson, JASA 22, 1927), which holds for few rows and near 0 and 1."""
    judged = list(outcomes)
    known = [outcome for outcome in judged if outcome is not None]
    if not known:
        return Estimate(None, None, None, 0, len(judged))
    share = sum(known) / len(known)
    low, high = _wilson(share, len(known))
    return Estimate(share, low, high, len(known), len(judged) - len(known))


def pass_at_k(samples: int, passed: int, k: int) -> float | None:
    """Unbiased chance that one of k samples solves a row, from more samples of it: 1 - C(n-c, k) / C(n, k).

    Chen et al., arXiv 2107.03374, equation 1, as the product that neither overflows nor loses digits. None when there
    are fewer than k samples.
    """
    if k < 1 or samples < k:
        return None
    if samples - passed < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(samples - passed + 1, samples + 1))


def pass_at_k_interval(counts: Iterable[tuple[int, int]], k: int) -> Estimate:
    """Mean of the rows' pass@k with a t interval over rows, kept within 0 and 1; where all are equal, Wilson's.

    Args:
        counts: judged samples and passed ones of each row; rows with fewer than k judged ones are left out.

    The interval over rows is that of Miller, arXiv 2411.00640, sections 2.1 and 3.1: a row's own estimate is one
    observation, so samples of one row are not taken for independent.
    """
    values = [pass_at_k(samples, passed, k) for samples, passed in counts]
    found = mean_interval(values)
    if found.value is None:
        return found
    if found.low is None or found.high is None:
        low, high = _wilson(found.value, found.rows)
        return Estimate(found.value, low, high, found.rows, found.left_out)
    return Estimate(found.value, max(0.0, found.low), min(1.0, found.high), found.rows, found.left_out)


def ks_of(samples: int) -> list[int]:
    """The k that pass@k is told for: 1, 2, 4, ... and the number of samples itself."""
    powers = [1 << place for place in range(samples.bit_length()) if 1 << place <= samples]
    return sorted({*powers, samples}) if samples > 0 else []


def paired_difference(before: Sequence[float | None], after: Sequence[float | None]) -> Estimate:
    """Mean of after - before over the same rows with the t interval of the differences (paired t).

    Rows without a value on either side are left out. Pairing takes out how hard each row is, so the interval is far
    narrower than that of two separate means.
    """
    pairs = zip(before, after, strict=True)
    return mean_interval(None if one is None or other is None else other - one for one, other in pairs)


def flips(before: Sequence[bool | None], after: Sequence[bool | None]) -> Flips:
    """Counts over the rows that were judged on both sides."""
    pairs = [(one, other) for one, other in zip(before, after, strict=True) if one is not None and other is not None]
    return Flips(
        gained=pairs.count((False, True)),
        lost=pairs.count((True, False)),
        both_right=pairs.count((True, True)),
        both_wrong=pairs.count((False, False)),
    )


def sign_test(gained: int, lost: int) -> float | None:
    """Exact two-sided p that gains and losses are equally likely; None when there is neither."""
    total, fewer = gained + lost, min(gained, lost)
    if total == 0:
        return None
    tail, term = 0, 1
    for place in range(fewer + 1):
        tail += term
        term = term * (total - place) // (place + 1)
    return min(1.0, 2 * tail / (1 << total))


@functools.lru_cache(maxsize=4096)
def t_quantile(freedom: int) -> float:
    """The 97.5 % point of Student's t with that many degrees of freedom."""
    if freedom > EXACT_T:  # Abramowitz and Stegun 26.7.5, off by less than 1e-9 here
        return (
            Z
            + (Z**3 + Z) / (4 * freedom)
            + (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * freedom**2)
            + (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / (384 * freedom**3)
        )
    low, high = 0.0, 16.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _t_within(middle, freedom) < LEVEL else (low, middle)
    return (low + high) / 2


def _t_within(t: float, freedom: int) -> float:
    """Chance that |T| <= t: the finite sums of Abramowitz and Stegun 26.7.3 and 26.7.4."""
    angle = math.atan2(t, math.sqrt(freedom))
    cosine, odd = math.cos(angle), freedom % 2 == 1
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for place in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine * cosine * (place - 1) / place
        total += term
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total


def _wilson(share: float, rows: int) -> tuple[float, float]:
    middle = (share + Z * Z / (2 * rows)) / (1 + Z * Z / rows)
    half = Z / (1 + Z * Z / rows) * math.sqrt(share * (1 - share) / rows + Z * Z / (4 * rows * rows))
    return (0.0 if share == 0 else max(0.0, middle - half)), (1.0 if share == 1 else min(1.0, middle + half))


def _known(values: Iterable[float | None]) -> tuple[list[float], int]:
    everything = list(values)
    known = [float(value) for value in everything if value is not None and math.isfinite(value)]
    return known, len(everything) - len(known)
