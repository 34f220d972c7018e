"""What a run has spent, over all attempts and whatever the clock does; its limits; what is still to come."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.spending import (
    Price,
    SpendingCount,
    Spent,
    exhausted,
    forecast_left,
    price_per_hour,
    reached,
    spent,
)
from grpo_studio.store.reader import RunReader
from grpo_studio.store.schema import open_for_writing

DOLLARS = Price(3.60, "a table")


def config_with(**limits: Any) -> RunConfig:
    return RunConfig.model_validate({"limits": limits, "algorithm": {"steps": 100, "prompts_per_step": 2}})


class Record:
    """Rows of a run.db with times of its own making."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.db: sqlite3.Connection = open_for_writing(path)

    def event(self, attempt: int, ts: float, kind: str) -> None:
        values = (attempt, ts, "info", kind, kind)
        self.db.execute("INSERT INTO event(attempt, ts, level, kind, message) VALUES (?, ?, ?, ?, ?)", values)

    def begun(self, attempt: int, from_step: int) -> None:
        self.db.execute("INSERT INTO attempt VALUES (?, ?, ?, 0)", (attempt, from_step, f"checkpoint-{from_step}"))

    def step(self, attempt: int, step: int, ts: float, tokens: int = 50, **seconds: float) -> None:
        for phase, value in (seconds or {"rollout": 6.0, "loss": 4.0}).items():
            self.db.execute(
                "INSERT INTO phase_time(attempt, step, phase, seconds) VALUES (?, ?, ?, ?)",
                (attempt, step, phase, value),
            )
        self.db.execute("INSERT INTO metric VALUES (NULL, ?, ?, 'time/step', 1, ?)", (attempt, step, ts))
        for split in ("train", "train", "eval"):
            group = self.db.execute(
                "INSERT INTO prompt_group(attempt, step, split, prompt) VALUES (?, ?, ?, 'q')", (attempt, step, split)
            ).lastrowid
            for _ in range(2):
                self.db.execute(
                    "INSERT INTO completion(attempt, group_id, idx, text, tokens, truncated) VALUES (?, ?, 0, '', ?, 0)",
                    (attempt, group, tokens),
                )

    def spent(self, now: float | None = None) -> Spent:
        with RunReader(self.path) as reader:
            return spent(reader, now)


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    record = Record(tmp_path / "run.db")
    yield record
    record.db.close()


def first_attempt(record: Record) -> None:
    """Waits 1,000 s in the queue, prepares for 30 s, then 3 steps of 10 s and 200 training tokens each."""
    record.event(1, 0, "run_created")
    record.event(1, 1000, "preparing")
    record.event(1, 1010, "preparing")
    record.event(1, 1030, "training_started")
    for step in (1, 2, 3):
        record.step(1, step, ts=1030 + 10 * step)


def test_a_run_that_has_recorded_nothing_has_spent_nothing(record: Record) -> None:
    assert record.spent() == record.spent(now=1e9) == Spent()


def test_waiting_in_the_queue_costs_nothing(record: Record) -> None:
    record.event(1, 0, "run_created")
    assert record.spent(now=1e6) == Spent()


def test_preparation_and_steps_count_and_only_training_tokens(record: Record) -> None:
    first_attempt(record)
    assert record.spent() == Spent(60.0, 600, 6)


def test_the_step_that_is_going_on_counts_for_who_knows_the_time(record: Record) -> None:
    first_attempt(record)
    assert record.spent(now=1067).seconds == 67.0
    record.event(1, 1070, "run_stopped")
    assert record.spent().seconds == 70.0, "saving after the last step"


def test_loading_counts_while_it_goes_on(record: Record) -> None:
    record.event(1, 100, "preparing")
    record.event(1, 130, "preparing")
    assert record.spent().seconds == 30.0
    assert record.spent(now=145).seconds == 45.0


def test_an_attempt_that_failed_while_it_prepared_counts(record: Record) -> None:
    record.event(1, 100, "preparing")
    record.event(1, 220, "run_failed")
    assert record.spent().seconds == 120.0


def test_superseded_steps_were_spent_as_well(record: Record) -> None:
    first_attempt(record)
    record.begun(2, from_step=1)
    record.event(2, 5000, "attempt_began")
    record.event(2, 9000, "preparing")
    record.event(2, 9020, "training_started")
    record.step(2, 1, ts=9020, evaluate=5.0, tokens=0)  # told while it prepared: within those 20 s already
    record.step(2, 2, ts=9030)
    assert record.spent() == Spent(60.0 + 20.0 + 10.0, 800, 10)


def test_a_clock_that_is_set_back_takes_nothing_away(record: Record) -> None:
    record.event(1, 1000, "preparing")
    record.event(1, 1030, "preparing")
    record.event(1, -50_000, "training_started")
    for step in (1, 2, 3):
        record.step(1, step, ts=-50_000 + 10 * step)
    assert record.spent().seconds == 60.0
    assert record.spent(now=-60_000).seconds == 60.0, "set back once more, before the record itself"


def test_a_clock_that_jumps_ahead_between_steps_adds_nothing(record: Record) -> None:
    first_attempt(record)
    record.step(1, 4, ts=9e8)
    record.event(1, 9e8, "run_finished")
    assert record.spent().seconds == 70.0


def test_two_looks_count_as_one_and_an_older_view_counts_nothing_twice(record: Record) -> None:
    first_attempt(record)
    count = SpendingCount()
    with RunReader(record.path) as old, old.snapshot():
        assert count.look(old).seconds == 60.0
        record.step(1, 4, ts=1070)
        with RunReader(record.path) as new:
            assert count.look(new) == Spent(70.0, 800, 8)
            count.look(old)
            assert count.look(new) == record.spent() == Spent(70.0, 800, 8)


def test_within_its_limits_a_run_goes_on() -> None:
    config = config_with(hours=1, cost=4, tokens=1000)
    assert reached(config, Spent(3599, 999), 7, DOLLARS) is None
    assert exhausted(config, Spent(3599, 999), DOLLARS) is None


@pytest.mark.parametrize(
    ("limits", "used", "told"),
    [
        ({"hours": 0.5}, Spent(1800, 40), "the limit of 0.5 hours is reached after step 12 (0.5 hours, $1.80, 40 tokens); "
         "raise limits.hours and resume"),
        ({"cost": 1.5}, Spent(1600, 1), "the limit of $1.50 is reached after step 12 (0.444 hours, $1.60, 1 token); "
         "raise limits.cost and resume"),
        ({"tokens": 1000}, Spent(1, 1200), "the limit of 1,000 tokens is reached after step 12 (0.000278 hours, $0.001, "
         "1,200 tokens); raise limits.tokens and resume"),
        ({"hours": 1, "tokens": 10**15}, Spent(1e15, 10**16), "the limit of 1 hour is reached after step 12 "
         "(277,777,777,778 hours, $1000000000000.00, 10,000,000,000,000,000 tokens); raise limits.hours and resume"),
    ],
    ids=["hours", "cost", "tokens", "huge"],
)  # fmt: skip
def test_at_a_limit_the_reason_is_told(limits: dict[str, float], used: Spent, told: str) -> None:
    assert reached(config_with(**limits), used, 12, DOLLARS) == told


def test_without_a_price_no_money_is_told_and_none_is_limited() -> None:
    assert "$" not in str(reached(config_with(hours=1), Spent(7200), 3, None))
    assert reached(config_with(cost=1), Spent(1e9), 3, None) is None


def test_a_resume_without_a_higher_limit_is_told_what_would_work() -> None:
    told = exhausted(config_with(hours=0.5), Spent(1872))
    assert told == "the limit of 0.5 hours is used up: 0.52 hours so far; resume with limits.hours above 0.52"
    assert exhausted(config_with(hours=0.53), Spent(1872)) is None
    tokens = exhausted(config_with(tokens=1000), Spent(1, 123_456))
    assert tokens is not None
    assert tokens.endswith("resume with limits.tokens above 123456")


def test_a_persons_own_price_wins_and_has_no_currency() -> None:
    price = price_per_hour(config_with(price_per_hour=2.5), "NVIDIA H100 80GB HBM3")
    assert price == Price(2.5, "limits.price_per_hour", sign="")
    assert price.told(price.of(7200)) == "5.00"


def test_the_price_of_the_table_is_that_of_all_cards_and_names_its_day() -> None:
    one = price_per_hour(config_with(), "Tesla T4")
    both = price_per_hour(
        RunConfig.model_validate({"scale": {"processes": 2, "strategy": "ddp"}, "rollout": {"engine": "vllm_server"}}),
        "Tesla T4",
    )
    assert one is not None
    assert both is not None
    assert both.value == pytest.approx(3 * one.value)
    assert "2026-08-22" in one.source
    assert price_per_hour(config_with(), "CPU, 2 cores") is None
    assert price_per_hour(config_with(), "AMD Instinct MI300X") is None, "no price of it could be verified"


@pytest.mark.parametrize(
    ("limits", "stops_at", "stops_in"),
    [
        ({}, "", None),
        ({"hours": 10}, "", None),
        ({"hours": 0.05}, "0.05 hours", 80.0),
        ({"cost": 0.2}, "$0.20", 100.0),
        ({"tokens": 1200}, "1,200 tokens", 50.0),
        ({"hours": 0.05, "cost": 0.2, "tokens": 1200}, "1,200 tokens", 50.0),
        ({"hours": 0.001}, "0.001 hours", 0.0),
    ],
)
def test_the_nearest_limit_before_the_end_is_told(
    limits: dict[str, float], stops_at: str, stops_in: float | None
) -> None:
    # 10 steps of 10 s are done, of 100; each samples 2 groups of 40 tokens.
    left = forecast_left(config_with(**limits), Spent(100, 800, 20), 10, 10.0, DOLLARS)
    assert left is not None
    assert left.seconds == 900.0
    assert left.cost_at_end == pytest.approx(1.0)
    assert left.stops_at == stops_at
    assert left.stops_in == (None if stops_in is None else pytest.approx(stops_in))


def test_nothing_is_forecast_without_a_pace_and_a_run_that_is_done_has_nothing_left() -> None:
    assert forecast_left(config_with(), Spent(), 0, None, DOLLARS) is None
    done = forecast_left(config_with(hours=1), Spent(100), 100, 10.0, None)
    assert done is not None
    assert (done.seconds, done.cost_at_end, done.stops_in) == (0.0, None, None)


def test_a_free_machine_costs_nothing() -> None:
    left = forecast_left(config_with(cost=1), Spent(100), 10, 10.0, Price(0.0, "limits.price_per_hour", ""))
    assert left is not None
    assert (left.cost_at_end, left.stops_in) == (0.0, None)
