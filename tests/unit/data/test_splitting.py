"""Held-out rows: by their prompt and a seed of their own, doubles on one side, never all of them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from grpo_studio.config import DatasetSettings
from grpo_studio.data import set_apart
from grpo_studio.errors import DataError

Numbered = list[tuple[int, dict[str, Any]]]


def numbered(prompts: list[Any]) -> Numbered:
    return [(number, {"prompt": prompt}) for number, prompt in enumerate(prompts, start=1)]


def held_out(rows: Numbered, count: int = 10, seed: int = 0) -> set[Any]:
    train, apart = set_apart(rows, DatasetSettings(held_out=count, held_out_seed=seed), "prompt")
    asked = {str(row["prompt"]) for _, row in apart}
    assert not asked & {str(row["prompt"]) for _, row in train}
    return asked


def test_which_rows_are_held_out_follows_from_prompts_and_seed_alone() -> None:
    rows = numbered([f"q{number}" for number in range(100)])
    assert len(held_out(rows)) == 10
    assert held_out(rows) == held_out(rows[::-1])
    assert held_out(rows, seed=1) == held_out(rows, seed=1)
    assert held_out(rows, seed=1) != held_out(rows) != held_out(rows, seed=2)


def test_more_held_out_rows_hold_the_fewer_ones() -> None:
    rows = numbered([f"q{number}" for number in range(100)])
    assert held_out(rows, 5) < held_out(rows, 20)


def test_rows_of_one_prompt_stay_on_one_side() -> None:
    rows = numbered([f"q{number % 30}" for number in range(90)])
    train, apart = set_apart(rows, DatasetSettings(held_out=10), "prompt")
    assert len(apart) == 10
    assert len(train) == 90 - 12  # four prompts of three rows: two rows are in neither
    assert [number for number, _ in train] == sorted(number for number, _ in train)


def test_chats_and_dotted_fields_are_prompts_too() -> None:
    chats = [[{"role": "user", "content": f"q{number // 2}"}] for number in range(40)]
    assert len(held_out(numbered(chats), 10)) == 5
    rows = [(number, {"extra": {"prompt": f"q{number}"}}) for number in range(10)]
    train, apart = set_apart(rows, DatasetSettings(held_out=3), "extra.prompt")
    assert (len(train), len(apart)) == (7, 3)


def test_none_held_out_leaves_all() -> None:
    rows = numbered(["a", "a", "b"])
    assert set_apart(rows, DatasetSettings(held_out=0), "prompt") == (rows, [])


@pytest.mark.parametrize(("prompts", "count"), [(["a"], 5), (["a", "a"], 1), (["a", "b"], 2), (["a"] * 20 + ["b"], 21)])
def test_holding_out_everything_is_refused(prompts: list[str], count: int) -> None:
    rows = numbered(prompts)
    with pytest.raises(
        DataError, match=f"holding out {count} of {len(prompts)} rows leaves none to train on"
    ) as caught:
        set_apart(rows, DatasetSettings(held_out=count), "prompt")
    fits = re.search(r"set dataset.held_out to (\d+)", str(caught.value))
    assert fits
    assert set_apart(rows, DatasetSettings(held_out=int(fits[1])), "prompt")[0]  # what it proposes works


def test_no_rows_at_all() -> None:
    with pytest.raises(DataError, match="no row has a usable prompt"):
        set_apart([], DatasetSettings(held_out=0), "prompt")
