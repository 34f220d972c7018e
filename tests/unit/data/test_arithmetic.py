"""`builtin:arithmetic`: where its levels may stand, which rows are held out, and names that are not there."""

from __future__ import annotations

from typing import Any

import pytest

from grpo_studio.config import DatasetSettings
from grpo_studio.data.made import made_fields, made_reward, made_rows, open_made
from grpo_studio.data.made.arithmetic import LEVELS, OPERATIONS, parse_levels
from grpo_studio.errors import DataError


def rows(**settings: Any) -> tuple[Any, Any, int]:
    return made_rows(DatasetSettings(**settings))


@pytest.mark.parametrize("level", sorted(LEVELS))
def test_every_level_has_train_and_held_out_rows_that_share_no_question(level: int) -> None:
    train, held_out, total = rows(config=str(level), held_out=10_000)

    def canonical(row: Any) -> tuple[Any, ...]:
        left, sign, right = row["prompt"].split()
        return (sign, *(sorted((left, right)) if sign in "+x" else (left, right)))

    assert 5 <= len(held_out) < len(train) == total - len(held_out)
    assert not {canonical(row) for _, row in train} & {canonical(row) for _, row in held_out}
    for _, row in train + held_out:
        left, sign, right = row["prompt"].split()
        assert row["answer"] == str(OPERATIONS[sign](int(left), int(right)))
        assert row["level"] == level


def test_the_rows_are_the_same_every_time() -> None:
    assert rows(config="1-3") == rows(config="1-3")
    assert rows()[2] == 100


@pytest.mark.parametrize(
    ("text", "levels"), [(None, [1]), ("2", [2]), ("1-3", [1, 2, 3]), ("3, 1", [1, 3]), ("1-2,2-3", [1, 2, 3])]
)
def test_levels(text: str | None, levels: list[int]) -> None:
    assert parse_levels(text) == levels


@pytest.mark.parametrize("text", ["0", "6", "easy", "1-", "3-1", "-1", "1-99", "9" * 400, "1;2", "\u0661"])
def test_unknown_levels_are_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(DataError, match="from 1 to 5"):
        parse_levels(text)


@pytest.mark.parametrize("levels", ["2", "1-3", "1,4"])
def test_levels_may_stand_in_the_params_too(levels: str) -> None:
    assert rows(params={"levels": levels}) == rows(config=levels)
    assert rows(params={"levels": levels}, config=levels) == rows(config=levels)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"params": {"levels": "1"}, "config": "2"}, "levels is '1', dataset.config '2'; set only one of them"),
        ({"params": {"level": "1"}}, "no setting 'level'; did you mean levels"),
        ({"params": {"levels": "9"}}, f"'9' is no level of builtin:arithmetic; give numbers from 1 to {max(LEVELS)}"),
        ({"params": {"levels": [1]}}, "levels is"),
        ({"source": "builtin:arithmetics"}, "did you mean builtin:arithmetic"),
        ({"source": "builtin:count"}, "did you mean builtin:countdown"),
        ({"source": "builtin:xyz\x1b[2J"}, "no built-in data set"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        rows(**settings)
    assert str(caught.value).isprintable()


def test_which_rows_are_held_out_follows_from_the_held_out_seed() -> None:
    first, second = rows(config="1-5", held_out=10_000), rows(config="1-5", held_out=10_000, held_out_seed=1)
    assert first[2] == second[2]
    for train, held_out, total in (first, second):
        asked = {row["prompt"] for _, row in held_out}
        assert len(held_out) > total / 7
        assert not asked & {row["prompt"] for _, row in train}
    assert {row["prompt"] for _, row in first[1]} != {row["prompt"] for _, row in second[1]}


def test_the_stream_has_the_same_rows_under_the_same_numbers() -> None:
    train, held_out, _ = rows(config="3", limit=20)
    assert list(enumerate(open_made(DatasetSettings(config="3", limit=20)).rows, start=1)) == [*train, *held_out]


def test_it_says_its_verifier_and_its_one_setting() -> None:
    assert made_reward("builtin:arithmetic") == {"verifier": "math_numeric", "params": {}}
    [levels] = made_fields("builtin:arithmetic")
    assert (levels["name"], levels["kind"], levels["nullable"]) == ("levels", "text", True)


@pytest.mark.parametrize("source", ["rows.csv", "owner/name"])
def test_what_is_not_made_in_place_has_no_such_settings(source: str) -> None:
    assert (made_fields(source), made_reward(source)) == ([], None)
