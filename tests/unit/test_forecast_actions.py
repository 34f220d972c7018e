"""What the Launch page may ask about memory: answers to drafts that are wrong, hostile or out of date."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.looks import ScanCache
from grpo_studio.settings import Settings
from grpo_studio.ui.launch_forecast import ForecastActions

GSM8K_8B = {"model": {"id": "Qwen/Qwen3-8B", "dtype": "bfloat16"}}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return dataclasses.replace(Settings.from_env(), home=tmp_path, cache=tmp_path / "cache")


@pytest.fixture
def actions(settings: Settings) -> ForecastActions:
    return ForecastActions(settings, ScanCache())


def draft(**changes: Any) -> dict[str, Any]:
    return {**RunConfig().model_dump(mode="json"), **changes}


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"algorithm": {"group_size": 0}}, 1),
        ({"algorithm": {"group_size": -8}}, 1),
        ({"memory": {"micro_batch": 7}, "algorithm": {"group_size": 8}}, 1),
        ({"algorithm": {"group_size": "many", "steps": 0}}, 2),
        ({"unheard_of": {}}, 1),
    ],
    ids=["zero", "negative", "does-not-divide", "text", "unknown"],
)
def test_settings_that_cannot_work_are_counted_and_not_forecast(
    actions: ForecastActions, changes: dict[str, Any], count: int
) -> None:
    answer = actions.launch_forecast({"data": draft(**changes)})
    assert set(answer) == {"unsound"}
    assert answer["unsound"] >= count


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (None, "no settings under 'data'"),
        ([], "not an object"),
        ({"data": 7}, "no settings under 'data'"),
        ({"data": GSM8K_8B, "card": "GeForce 256"}, "no card is called 'GeForce 256'"),
        ({"data": GSM8K_8B, "card": "0"}, "card"),
        ({"data": {"model": {"id": "x" * 300_000}}}, "bytes; at most"),
    ],
    ids=["nothing", "list", "number", "unknown-card", "no-size", "huge"],
)
def test_a_request_that_makes_no_sense_gets_one_line(actions: ForecastActions, request_: Any, told: str) -> None:
    answer = actions.launch_forecast(request_)
    assert set(answer) == {"error"}
    assert told in answer["error"]
    assert "\n" not in answer["error"]


def test_a_path_that_visitors_may_not_read_is_not_looked_into(settings: Settings, tmp_path: Path) -> None:
    secret = tmp_path.parent / "config.json"
    open_to_others = dataclasses.replace(settings, host="0.0.0.0")
    answer = ForecastActions(open_to_others, ScanCache()).launch_forecast(
        {"data": draft(model={"id": str(secret.parent)})}
    )
    assert answer == {"unsound": 1}


def test_only_the_newest_question_of_a_page_is_answered(actions: ForecastActions) -> None:
    wrong = draft(algorithm={"group_size": 0})
    newer = actions.launch_forecast({"data": wrong, "page": "a page", "ticket": 2})
    assert "unsound" in newer
    assert actions.launch_forecast({"data": wrong, "page": "a page", "ticket": 1}) == {"superseded": True}
    assert "unsound" in actions.launch_forecast({"data": wrong, "page": "another", "ticket": 1})


def test_the_cards_are_those_of_the_table_and_this_machine(actions: ForecastActions) -> None:
    cards = actions.forecast_cards({})
    names = [card["name"] for card in cards["table"]]
    assert cards["usual"] in names
    here = cards["own"] or cards["machine"]
    assert here["bytes"] > 10**9
