"""Histograms of prompt lengths: bars that read well, and the room that a completion leaves."""

from __future__ import annotations

import itertools
import random

import pytest

from grpo_studio.data.lengths import BINS, fits, histogram, histogram_of, prompt_lengths


@pytest.mark.parametrize(
    ("values", "edges", "counts"),
    [
        ([], (), ()),
        ([37], (37, 38), (1,)),
        ([37] * 9, (37, 38), (9,)),
        ([0, 0], (0, 1), (2,)),
        ([3, 5], (3, 4, 5, 6), (1, 0, 1)),
        ([1, 40], tuple(range(1, 42)), (1, *[0] * 38, 1)),
        ([10, 50], tuple(range(10, 54, 2)), (1, *[0] * 19, 1)),
        ([99, 301], tuple(range(90, 320, 10)), (1, *[0] * 20, 1)),
    ],
)
def test_bars_of_few_values(values: list[int], edges: tuple[int, ...], counts: tuple[int, ...]) -> None:
    assert histogram(values) == (edges, counts)


@pytest.mark.parametrize("seed", range(20))
def test_bars_hold_every_row_once_and_have_round_edges(seed: int) -> None:
    picker = random.Random(seed)
    values = [picker.randint(0, 10 ** picker.randint(1, 6)) for _ in range(picker.randint(1, 500))]
    edges, counts = histogram(values)
    width = edges[1] - edges[0]
    assert len(counts) <= BINS
    assert str(width).rstrip("0") in ("1", "2", "5")
    assert all(edge % width == 0 for edge in edges)
    assert {high - low for low, high in itertools.pairwise(edges)} == {width}
    assert [sum(low <= value < low + width for value in values) for low in edges[:-1]] == list(counts)
    assert edges[0] <= min(values)
    assert max(values) < edges[-1]


def test_one_prompt_of_a_hundred_thousand_tokens_does_not_make_a_hundred_thousand_bars() -> None:
    edges, counts = histogram([50] * 1000 + [100_000])
    assert len(counts) <= BINS
    assert (counts[0], counts[-1]) == (1000, 1)
    assert edges[-1] > 100_000


def test_the_middle_and_the_longest_are_lengths_of_rows() -> None:
    lengths = prompt_lengths(list(range(1, 101)), list(range(1, 101)))
    assert (lengths.median, lengths.p95, lengths.longest) == (50, 95, 100)
    one = prompt_lengths([7], [3])
    assert (one.median, one.p95, one.longest) == (7, 7, 7)
    none = prompt_lengths([], [], 512, 100)
    assert (none.median, none.p95, none.longest, none.edges, none.too_long) == (0, 0, 0, (), 0)


def test_the_room_is_what_a_completion_leaves_of_the_context() -> None:
    lengths = prompt_lengths([56, 57, 56, 900], [4, 9, 11, 30], context=256, completion=200)
    assert (lengths.room, lengths.too_long, lengths.too_long_rows) == (56, 2, (9, 30))
    assert prompt_lengths([5], [1], context=None, completion=200).room is None
    assert prompt_lengths([5], [1], context=None, completion=200).too_long == 0


@pytest.mark.parametrize(
    ("tokens", "room", "does"), [(56, 56, True), (57, 56, False), (1, 0, False), (10**9, None, True)]
)
def test_a_prompt_fits_up_to_the_last_token(tokens: int, room: int | None, does: bool) -> None:
    assert fits(tokens, room) is does


def test_only_the_first_too_long_rows_are_named_and_all_are_counted() -> None:
    lengths = prompt_lengths([9] * 50, list(range(1, 51)), context=8, completion=4)
    assert (lengths.too_long, lengths.too_long_rows) == (50, tuple(range(1, 11)))
    assert lengths.as_dict()["too_long_rows"] == list(range(1, 11))


def test_fewer_bars_hold_the_same_rows() -> None:
    values = [random.Random(1).randint(20, 400) for _ in range(300)]
    lengths = prompt_lengths(values, list(range(300)))
    edges, counts = histogram_of(lengths, 10)
    assert len(counts) <= 10
    assert [sum(low <= value < high for value in values) for low, high in itertools.pairwise(edges)] == list(counts)
    assert histogram_of(prompt_lengths([], []), 10) == ((), ())
