"""Figures of held-out rows against values worked out elsewhere, and what few or equal rows leave unsaid."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest

from grpo_studio.evaluation_stats import (
    flips,
    ks_of,
    mean_interval,
    paired_difference,
    pass_at_k,
    pass_at_k_interval,
    share_interval,
    sign_test,
    t_quantile,
)


@pytest.mark.parametrize(
    ("freedom", "table"),
    [
        (1, 12.7062),
        (2, 4.3027),
        (3, 3.1824),
        (4, 2.7764),
        (9, 2.2622),
        (10, 2.2281),
        (31, 2.0395),
        (100, 1.9840),
        (120, 1.9799),
        (1000, 1.9623),
    ],
)
def test_t_is_that_of_the_printed_tables(freedom: int, table: float) -> None:
    assert t_quantile(freedom) == pytest.approx(table, abs=6e-5)


def test_t_has_no_step_where_the_expansion_takes_over_and_falls_to_the_normal_point() -> None:
    points = [t_quantile(freedom) for freedom in range(390, 412)]
    gaps = [one - other for one, other in itertools.pairwise(points)]
    assert all(gap > 0 for gap in gaps)
    assert max(gaps) / min(gaps) < 1.2
    assert t_quantile(10**7) == pytest.approx(1.959964, abs=1e-6)


def test_mean_interval_of_a_worked_example() -> None:
    found = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.value == 3.0
    assert found.low == pytest.approx(3 - 2.7764 * math.sqrt(2.5) / math.sqrt(5), abs=1e-3)
    assert found.high is not None
    assert found.low is not None
    assert found.high + found.low == pytest.approx(6)


@pytest.mark.parametrize("values", [[0.5], [0.25, 0.25, 0.25], [0.0] * 40])
def test_one_row_or_equal_rows_have_a_mean_and_no_interval(values: list[float]) -> None:
    found = mean_interval(values)
    assert (found.value, found.low, found.high, found.rows) == (values[0], None, None, len(values))


@pytest.mark.parametrize("values", [[], [None, None], [math.nan, math.inf]])
def test_no_value_at_all_is_no_zero(values: list[float | None]) -> None:
    found = mean_interval(values)
    assert (found.value, found.rows, found.left_out) == (None, 0, len(values))
    assert share_interval([None] * 3).value is None


def test_abstentions_are_left_out_and_counted() -> None:
    found = mean_interval([1.0, None, 0.0, None])
    assert (found.value, found.rows, found.left_out) == (0.5, 2, 2)
    share = share_interval([True, None, False, False])
    assert (share.rows, share.left_out) == (3, 1)
    assert share.value == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("passed", "rows", "low", "high"),
    [(0, 10, 0.0, 0.2775), (1, 10, 0.0179, 0.4042), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)],
)  # fmt: skip
def test_wilson_intervals_of_published_examples(passed: int, rows: int, low: float, high: float) -> None:
    found = share_interval([True] * passed + [False] * (rows - passed))
    assert found.low == pytest.approx(low, abs=1e-4)
    assert found.high == pytest.approx(high, abs=1e-4)


def test_pass_at_k_is_the_quotient_of_binomials() -> None:
    for n, k in itertools.product(range(1, 13), range(1, 13)):
        for c in range(n + 1):
            wanted = None if k > n else 1 - math.comb(n - c, k) / math.comb(n, k)
            assert pass_at_k(n, c, k) == (None if wanted is None else pytest.approx(wanted, abs=1e-12))


def test_pass_at_k_is_the_mean_over_all_draws_of_k_samples() -> None:
    outcomes = [True, False, False, True, False, False]
    draws = list(itertools.combinations(outcomes, 3))
    assert pass_at_k(6, 2, 3) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_pass_at_k_bears_many_samples() -> None:
    value = pass_at_k(1024, 1, 512)
    assert value == pytest.approx(0.5)
    assert pass_at_k(1024, 0, 1024) == 0.0
    assert pass_at_k(1024, 1, 1024) == 1.0
    assert pass_at_k(1024, 1024, 1) == 1.0


def test_pass_at_1_is_the_share_of_passed_samples_and_grows_with_k() -> None:
    values = [pass_at_k(16, 3, k) for k in ks_of(16)]
    known = [value for value in values if value is not None]
    assert known[0] == pytest.approx(3 / 16)
    assert known == sorted(known)


def test_the_interval_of_pass_at_k_is_over_rows_and_leaves_short_rows_out() -> None:
    found = pass_at_k_interval([(4, 1), (4, 3), (4, 0), (1, 1)], 2)
    rows = [0.5, 1.0, 0.0]
    assert found.value == pytest.approx(statistics.fmean(rows))
    assert (found.rows, found.left_out) == (3, 1)
    assert (found.low, found.high) == (0.0, 1.0), "an interval does not leave 0 to 1"


@pytest.mark.parametrize(("counts", "value"), [([(4, 0)] * 10, 0.0), ([(4, 4)] * 10, 1.0)])
def test_rows_that_all_failed_or_all_passed_still_have_an_interval(counts: list[tuple[int, int]], value: float) -> None:
    found = pass_at_k_interval(counts, 2)
    assert found.value == value
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low == pytest.approx(0.2775, abs=1e-4)


def test_which_k_are_told() -> None:
    assert ks_of(0) == []
    assert ks_of(1) == [1]
    assert ks_of(6) == [1, 2, 4, 6]
    assert ks_of(8) == [1, 2, 4, 8]


def test_a_paired_difference_is_narrower_than_two_means() -> None:
    rng = random.Random(0)
    before: list[float | None] = [rng.gauss(0, 1) for _ in range(40)]
    after = [None if value is None else value + 0.2 + rng.gauss(0, 0.05) for value in before]
    found, alone = paired_difference(before, after), mean_interval(after)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.2 < found.high
    assert alone.low is not None
    assert alone.high is not None
    assert found.high - found.low < (alone.high - alone.low) / 5


def test_a_pair_with_one_side_missing_does_not_count() -> None:
    found = paired_difference([0.0, 1.0, None], [1.0, None, 1.0])
    assert (found.value, found.rows, found.left_out) == (1.0, 1, 2)


def test_flips_count_only_what_was_judged_twice() -> None:
    found = flips([True, False, True, False, None, True], [True, True, False, False, True, None])
    assert (found.gained, found.lost, found.both_right, found.both_wrong) == (1, 1, 1, 1)
    assert found.p == 1.0


@pytest.mark.parametrize(
    ("gained", "lost", "p"), [(0, 5, 0.0625), (1, 9, 0.021484375), (7, 7, 1.0), (6, 16, 0.0524788), (1, 0, 1.0)]
)
def test_the_sign_test_is_exact(gained: int, lost: int, p: float) -> None:
    assert sign_test(gained, lost) == pytest.approx(p, abs=1e-7)
    assert sign_test(lost, gained) == sign_test(gained, lost)


def test_without_a_flip_there_is_no_p_and_many_flips_do_not_overflow() -> None:
    assert sign_test(0, 0) is None
    many = sign_test(6000, 4000)
    assert many is not None
    assert 0 <= many < 1e-80
