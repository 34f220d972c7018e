"""`builtin:countdown`: solvable, distinct, held out by the question, and settings that say what is wrong."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction
from typing import Any

import pytest

from grpo_studio import data
from grpo_studio.config import DatasetSettings
from grpo_studio.data.made import made_fields, made_reward, made_rows, open_made
from grpo_studio.errors import DataError
from grpo_studio.settings import BUNDLED_REWARDS
from grpo_studio.verifiers.discovery import load_file
from grpo_studio.verifiers.equation import read_equation

SOURCE = "builtin:countdown"


def settings(held_out: int = 32, held_out_seed: int = 0, limit: int | None = None, **params: Any) -> DatasetSettings:
    return DatasetSettings(source=SOURCE, params=params, held_out=held_out, held_out_seed=held_out_seed, limit=limit)


def question(row: Any) -> tuple[Any, ...]:
    return (*sorted(row["nums"]), "gives", row["target"])


@pytest.mark.parametrize("numbers", ["2", "3-4", "5,6"])
def test_every_row_is_solved_by_its_equation(numbers: str) -> None:
    train, held_out, total = made_rows(settings(numbers=numbers, size=150, largest_target=300))
    assert (len(train), len(held_out), total) == (118, 32, 150)
    [verifier] = load_file(BUNDLED_REWARDS / "countdown.py")
    for _, row in [*train, *held_out]:
        read = read_equation(row["equation"])
        assert read.value == row["target"] == int(row["answer"])
        assert sorted(read.numbers) == sorted(map(Fraction, row["nums"]))
        assert verifier.function(f"<answer>{row['equation']}</answer>", row["answer"], row["nums"]).score == 1.0
        assert verifier.function(f"<answer>{row['target']}</answer>", row["answer"], row["nums"]).score == 0.0
        assert 10 <= row["target"] <= 300
        assert all(str(number) in row["prompt"] for number in (*row["nums"], row["target"]))
        assert row["equation"] not in row["prompt"]


def test_no_two_rows_ask_the_same_in_another_order() -> None:
    train, held_out, _ = made_rows(settings(numbers="2-3", largest_number=20, size=1000))
    asked = [question(row) for _, row in [*train, *held_out]]
    assert len(set(asked)) == len(asked) == 1000


def test_no_run_trains_on_what_a_run_with_other_settings_is_tested_on() -> None:
    chosen = [
        settings(64, numbers="2-3", largest_number=12, size=500),
        settings(8, numbers="2-3", largest_number=12, size=200, seed=5),
        settings(200, numbers="2", largest_number=40, size=600),
        settings(0, numbers="2-3", largest_number=15, size=900),
    ]
    made = [made_rows(one) for one in chosen]
    tested = {question(row) for _, held_out, _ in made for _, row in held_out}
    trained = {question(row) for train, _, _ in made for _, row in train}
    assert len(tested) > 200
    assert not tested & trained


def test_another_held_out_seed_holds_out_other_questions() -> None:
    small = {"numbers": "2", "largest_number": 30, "size": 300}
    first, second = (made_rows(settings(50, seed, **small))[1] for seed in (0, 1))
    assert {question(row) for _, row in first} != {question(row) for _, row in second}


def test_the_numbers_and_rows_are_those_of_the_stream() -> None:
    chosen = settings(size=300)
    train, held_out, _ = made_rows(chosen)
    streamed = list(open_made(chosen).rows)
    assert sorted([*train, *held_out], key=lambda numbered: numbered[0]) == list(enumerate(streamed, start=1))
    assert list(streamed[0]) == list(open_made(chosen).columns)
    assert made_rows(settings(size=300, limit=10))[0] == train[:10]


def test_a_first_look_makes_no_more_than_it_asks_for() -> None:
    stream = open_made(settings(size=1_000_000))
    assert len(list(itertools.islice(stream.rows, 3))) == 3
    assert stream.share is not None
    assert 0 < stream.share() < 0.001


def test_more_rows_begin_with_the_fewer() -> None:
    few, many = (list(open_made(settings(size=size)).rows) for size in (200, 400))
    held = 32  # of a larger set as many are held out, so its first rows are the same up to the last of them
    assert few[: 200 - held] == many[: 200 - held]


def test_the_order_of_the_numbers_tells_nothing_of_the_solution() -> None:
    rows = list(open_made(settings(numbers="4", size=1500)).rows)
    rows = [row for row in rows if len(set(row["nums"])) == 4]
    in_order = sum(list(map(int, re.findall("[0-9]+", row["equation"]))) == row["nums"] for row in rows)
    assert in_order / len(rows) == pytest.approx(1 / 24, abs=0.02)


def test_levels_grow_with_the_numbers_and_with_products_that_are_needed() -> None:
    rows = list(open_made(settings(numbers="3-4", size=500)).rows)
    assert {row["level"] for row in rows} == {3, 4, 5, 6}
    for row in rows:
        signs = itertools.product((1, -1), repeat=len(row["nums"]))
        summed = any(sum(s * n for s, n in zip(sign, row["nums"], strict=True)) == row["target"] for sign in signs)
        assert row["level"] == 2 * len(row["nums"]) - (3 if summed else 2)


def test_a_run_gets_the_target_as_gold_and_the_numbers_beside_it() -> None:
    splits = data.load(settings(size=100))
    sample = splits.train[0]
    assert sample.answer == str(sample.columns["target"])
    assert len(sample.columns["nums"]) in (3, 4)
    assert (len(splits.train), len(splits.held_out), splits.rows_read) == (68, 32, 100)
    assert made_reward(SOURCE) == {"verifier": "countdown", "params": {}}


@pytest.mark.parametrize(
    ("numbers", "counts"), [("4", {4}), (4, {4}), ("3-4", {3, 4}), ([2, 5], {2, 5}), ("2,4-5", {2, 4, 5})]
)
def test_how_many_numbers_may_be_written_in_several_ways(numbers: Any, counts: set[int]) -> None:
    assert {len(row["nums"]) for row in open_made(settings(numbers=numbers, size=100)).rows} == counts


def test_where_the_settings_allow_few_questions_there_are_few() -> None:
    narrow = {"numbers": "2", "largest_number": 9}
    train, held_out, total = made_rows(settings(**narrow))
    assert total == len(train) + len(held_out) < 100
    message = rf"finds only {len(train)} questions to train on and {len(held_out)} to hold out.*of {total} rows"
    with pytest.raises(DataError, match=message):
        made_rows(settings(**narrow, size=500))
    assert made_rows(settings(len(held_out), **narrow, size=total))[2] == total


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"number": 3}, "no setting 'number'; did you mean numbers"),
        ({3: 4}, "no setting 3"),
        ({"numbers": "7"}, "numbers is '7'; give counts from 2 to 6"),
        ({"numbers": "1-3"}, "numbers is '1-3'; give counts"),
        ({"numbers": "few"}, "numbers is 'few'; give counts"),
        ({"numbers": []}, "numbers is ''; give counts"),
        ({"numbers": None}, "numbers is None"),
        ({"largest_number": 0}, "largest_number is 0"),
        ({"largest_number": "many"}, "largest_number is 'many'"),
        ({"largest_number": 10**5000}, "largest_number is an integer of over"),
        ({"smallest_target": 100, "largest_target": 50}, "smallest_target is 100 and largest_target 50; swap them"),
        ({"smallest_number": 50, "largest_number": 5}, "smallest_number is 50 and largest_number 5; swap them"),
        ({"size": 1.5}, "size is 1.5"),
        ({"size": 32}, "holding out 32 of 32 rows leaves none to train on; set dataset.held_out to 6 or less"),
        ({"largest_number": 2, "smallest_target": 90}, "finds only 0 questions to train on"),
    ],
)
def test_settings_that_cannot_work_are_one_clear_line(params: dict[Any, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        made_rows(
            DatasetSettings.model_construct(
                source=SOURCE, params=params, config=None, held_out=32, limit=None, held_out_seed=0
            )
        )
    assert "\n" not in str(caught.value)


def test_a_configuration_is_refused_since_it_has_none() -> None:
    with pytest.raises(DataError, match=r"dataset\.config is 'main', but builtin:countdown has no configurations"):
        made_rows(DatasetSettings(source=SOURCE, config="main"))


def test_the_form_shows_its_settings_with_their_bounds() -> None:
    fields = {field["name"]: field for field in made_fields(SOURCE)}
    assert fields["numbers"]["kind"] == "text"
    assert (fields["size"]["kind"], fields["size"]["default"], fields["size"]["min"]) == ("int", 10_000, 1)
    assert all(field["help"] and field["title"] for field in fields.values())
