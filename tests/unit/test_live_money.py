"""The strip of the Live page counts time, money and what is left of the limits."""

from __future__ import annotations

import os
from typing import Any

import pytest
from sample_run import SampleRun, sample_config

from grpo_studio.config import RunConfig
from grpo_studio.settings import Settings
from grpo_studio.store.folder import ProcessRecord, create_run
from grpo_studio.store.reader import RunReader
from grpo_studio.ui import live_money
from grpo_studio.ui.live import LiveActions
from grpo_studio.ui.live_money import money
from grpo_studio.ui.live_run import LiveRun
from grpo_studio.ui.run_states import state_of


@pytest.fixture
def run(settings: Settings) -> SampleRun:
    run = SampleRun(settings.home)
    run.begin()
    run.advance(3)
    return run


def shown(run: SampleRun, pace: float | None = 10.0, **limits: Any) -> dict[str, Any]:
    config = run.config.model_copy(update={"limits": run.config.limits.model_copy(update=limits)})
    live = LiveRun(run.folder, config, state_of(run.folder))
    with RunReader(run.folder.database) as reader:
        return money(live, reader, run.now, pace)


def recorded(run: SampleRun) -> float:
    with RunReader(run.folder.database) as reader:
        return float(reader.rows("SELECT sum(seconds) FROM phase_time")[0][0])


def test_without_a_price_there_is_time_and_no_money(run: SampleRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_money, "_card", lambda turn: "CPU, 2 cores")
    told = shown(run)
    assert told["seconds"] >= recorded(run) * 0.999
    assert (told["cost"], told["cost_at_end"], told["price"], told["stops_in"]) == (None, None, None, None)


def test_with_a_price_it_tells_the_cost_so_far_and_at_the_end(run: SampleRun) -> None:
    told = shown(run, price_per_hour=3600)
    assert float(told["cost"]) == pytest.approx(told["seconds"], rel=1e-3)
    assert float(told["cost_at_end"]) == pytest.approx(
        told["seconds"] + 10 * (run.config.algorithm.steps - 3), rel=1e-3
    )
    assert told["price"] == "3600.00, limits.price_per_hour"


def test_the_price_of_the_table_has_its_currency_and_its_day(run: SampleRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_money, "_card", lambda turn: "Tesla T4")
    told = shown(run)
    assert told["cost"].startswith("$")
    assert "read 2026-08-22" in told["price"]


def test_the_card_that_the_run_recorded_has_the_price_not_the_one_of_this_machine(
    run: SampleRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_money, "_card", lambda turn: "Tesla T4")
    run.writer.event("setup", "0.1 M parameters", data={"card": "NVIDIA H200"})
    assert "H200" in shown(run)["price"]
    run.writer.event("setup", "0.1 M parameters", data={"card": None})
    assert "T4" in shown(run)["price"]


def test_the_limit_that_comes_before_the_end_is_told(run: SampleRun) -> None:
    told = shown(run, hours=0.05)
    assert told["stops_at"] == "0.05 hours"
    assert told["stops_in"] == pytest.approx(180 - told["seconds"], rel=1e-3)
    assert shown(run, hours=100)["stops_in"] is None


def test_a_run_without_a_pace_forecasts_nothing(run: SampleRun) -> None:
    told = shown(run, pace=None, price_per_hour=3600, hours=0.05)
    assert told["cost"] is not None
    assert (told["cost_at_end"], told["stops_in"]) == (None, None)


def test_a_run_that_has_ended_does_not_grow(run: SampleRun) -> None:
    run.end("run_stopped", "stopped on request")
    run.folder.write_process(ProcessRecord(2**22, "gone", 2**22, os.uname().nodename, 1, exit_code=0))
    assert state_of(run.folder).ended
    assert shown(run) == shown(run)


def test_the_tick_carries_it(run: SampleRun, settings: Settings) -> None:
    strip = LiveActions(settings).live_tick({})["strip"]
    assert set(strip["money"]) == {"seconds", "cost", "cost_at_end", "price", "stops_at", "stops_in"}


def test_a_run_in_the_queue_has_spent_nothing(settings: Settings) -> None:
    config: RunConfig = sample_config(20, 0.0)
    folder = create_run(settings.runs_dir, config, "waits")
    with RunReader(folder.database) as reader:
        told = money(LiveRun(folder, config, state_of(folder)), reader, 0, None)
    assert told["seconds"] == 0.0
