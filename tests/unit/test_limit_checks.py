"""What `check` says of limits: money that cannot be counted, and what each limit comes to."""

from __future__ import annotations

from typing import Any

import pytest

from grpo_studio import limit_checks
from grpo_studio.config import RunConfig
from grpo_studio.devices import Device
from grpo_studio.limit_checks import limit_problems
from grpo_studio.problem import Problem

T4 = Device("cuda", "Tesla T4", 16 << 30, 0)
UNKNOWN = Device("cuda", "NVIDIA Future 9000", 1 << 40, 0)
CPU = Device("cpu", "CPU, 2 cores", 8 << 30, 0)


def found(
    monkeypatch: pytest.MonkeyPatch, device: Device, limits: dict[str, Any], **sections: Any
) -> tuple[list[Problem], list[str]]:
    monkeypatch.setattr(limit_checks, "current_device", lambda: device)
    notes: list[str] = []
    config = RunConfig.model_validate({"limits": limits, **sections})
    return list(limit_problems(config, notes)), notes


@pytest.mark.parametrize("device", [UNKNOWN, CPU])
def test_a_cost_limit_without_a_price_is_a_problem(monkeypatch: pytest.MonkeyPatch, device: Device) -> None:
    problems, notes = found(monkeypatch, device, {"cost": 5})
    assert [problem.field for problem in problems] == ["limits.price_per_hour"]
    assert device.name in problems[0].message
    assert "limits.price_per_hour" in problems[0].fix
    assert notes == []


def test_a_price_makes_it_none_whatever_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    problems, notes = found(monkeypatch, CPU, {"cost": 5, "price_per_hour": 2.5})
    assert problems == []
    assert notes == ["the run stops at a cost of 5.00, which is 2 hours at 2.50 an hour (limits.price_per_hour)"]


def test_the_table_gives_a_price_with_its_day(monkeypatch: pytest.MonkeyPatch) -> None:
    problems, notes = found(monkeypatch, T4, {"cost": 1, "hours": 2})
    assert problems == []
    assert len(notes) == 2
    assert "which is 2.5 hours at $0.40 an hour (T4, Hugging Face Spaces, read 2026-08-22" in notes[0]
    assert "at the limit of 2 hours it has cost $0.80" in notes[1]


def test_hours_without_a_price_say_nothing_of_money(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, CPU, {"hours": 2}) == ([], [])
    assert found(monkeypatch, UNKNOWN, {}) == ([], [])


def test_at_no_price_a_cost_is_never_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    problems, _ = found(monkeypatch, T4, {"cost": 1, "price_per_hour": 0})
    assert "at 0 an hour no run ever costs 1" in str(problems[0])


SHAPE = {"steps": 100, "prompts_per_step": 2, "group_size": 4, "max_completion_length": 100}  # 800 tokens a step


@pytest.mark.parametrize(
    ("tokens", "every", "told"),
    [
        (80_000, 0, []),
        (8_000, 0, ["limits.tokens may be reached after step 10 of 100, if all completions are cut off"]),
        (8_000, 5, ["limits.tokens may be reached after step 10 of 100, if all completions are cut off"]),
        (1, 5, ["limits.tokens may be reached after step 1 of 100, if all completions are cut off, before the first "
                "evaluation during training (evaluation.every is 5) and the first checkpoint (checkpoint.every is 5)"]),
    ],
)  # fmt: skip
def test_tokens_that_may_be_used_up_before_the_end_are_told(
    monkeypatch: pytest.MonkeyPatch, tokens: int, every: int, told: list[str]
) -> None:
    sections = {"algorithm": SHAPE, "evaluation": {"every": every}, "checkpoint": {"every": every}}
    assert found(monkeypatch, CPU, {"tokens": tokens}, **sections) == ([], told)


def test_a_batch_that_is_used_several_times_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = {**SHAPE, "num_iterations": 2}
    _, notes = found(monkeypatch, CPU, {"tokens": 1601}, algorithm=shape)
    assert notes == ["limits.tokens may be reached after step 5 of 100, if all completions are cut off"]
