"""Settings: bounds, unknown keys, cross-field rules, all problems at once."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from grpo_studio.config import RunConfig
from grpo_studio.declaration import fields_of
from grpo_studio.rules import inspect


def problems_by_field(data: dict[str, Any]) -> dict[str, str]:
    return {problem.field: str(problem) for problem in inspect(data).problems}


def test_defaults_are_a_configuration_without_problems() -> None:
    inspected = inspect({})
    config, problems = inspected.config, inspected.problems
    assert config == RunConfig()
    assert problems == []


def test_every_setting_has_title_and_help() -> None:
    for name, info in fields_of(RunConfig).items():
        assert info.title, name
        if name != "rewards":
            assert info.description, name
            assert info.description.endswith("."), name


def test_config_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        RunConfig().algorithm.steps = 3  # type: ignore[misc]


def test_all_problems_are_found_at_once() -> None:
    found = problems_by_field(
        {
            "algorithm": {"group_size": 1, "stepz": 3, "learning_rate": "fast"},
            "memory": {"loss_backend": "full", "chunk_size": 2, "micro_batch": 7},
            "alerts": [{"metric": "policy/kl"}],
            "rewards": [{"verifier": "math_numeric", "weight": -2}],
        }
    )
    assert set(found) == {
        "algorithm.group_size", "algorithm.stepz", "algorithm.learning_rate", "memory.chunk_size", "memory.micro_batch", "rewards", "alerts",
    }  # fmt: skip
    assert "did you mean steps" in found["algorithm.stepz"]
    assert "not yet" in found["alerts"]


def test_group_size_one_names_the_field_the_value_and_what_works() -> None:
    message = problems_by_field({"algorithm": {"group_size": 1}})["algorithm.group_size"]
    assert "found 1" in message
    assert "use 2 or more" in message


@pytest.mark.parametrize(("micro_batch", "nearest"), [(7, 8), (5, 4), (64, 32), (3, 2)])
def test_micro_batch_that_does_not_divide_gets_the_nearest_that_does(micro_batch: int, nearest: int) -> None:
    data = {"algorithm": {"prompts_per_step": 4, "group_size": 8}, "memory": {"micro_batch": micro_batch}}
    assert f"use {nearest}," in problems_by_field(data)["memory.micro_batch"]


@pytest.mark.parametrize(
    ("prompts", "group", "micro_batch", "accumulation"), [(4, 8, 16, 2), (16, 8, 16, 8), (1, 7, 7, 1), (11, 13, 13, 11)]
)
def test_batch_sizes_are_derived(prompts: int, group: int, micro_batch: int, accumulation: int) -> None:
    config = RunConfig.model_validate({"algorithm": {"prompts_per_step": prompts, "group_size": group}})
    derived = config.derived()
    assert derived["completions_per_step"] == prompts * group
    assert derived["micro_batch"] == micro_batch
    assert derived["gradient_accumulation_steps"] == accumulation


def test_settings_that_are_not_built_are_refused() -> None:
    assert "not yet" in problems_by_field({"alerts": [{"metric": "policy/kl"}]})["alerts"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 0.0, "high"])
def test_learning_rate_must_be_a_positive_finite_number(value: object) -> None:
    assert "algorithm.learning_rate" in problems_by_field({"algorithm": {"learning_rate": value}})


def test_rewards_need_distinct_names_and_a_positive_sum() -> None:
    twice = [
        {"verifier": "regex_match", "params": {"pattern": "a"}},
        {"verifier": "regex_match", "params": {"pattern": "b"}},
    ]
    assert "taken by reward 1" in problems_by_field({"rewards": twice})["rewards.1.name"]
    cancel = [{"verifier": "a", "weight": 1}, {"verifier": "b", "weight": -1}]
    assert "add up to 0" in problems_by_field({"rewards": cancel})["rewards"]
    assert "rewards" in problems_by_field({"rewards": []})


def test_template_without_a_place_for_the_question_is_refused() -> None:
    assert "{prompt}" in problems_by_field({"dataset": {"prompt_template": "Solve it."}})["dataset.prompt_template"]


@pytest.mark.parametrize(
    "data", [{"model": 3}, {"algorithm": []}, {"rewards": {"a": 1}}, {"rewards": ["x"]}, {"dataset": None}]
)
def test_wrong_shapes_are_problems_not_exceptions(data: dict[str, Any]) -> None:
    inspected = inspect(data)
    config, problems = inspected.config, inspected.problems
    assert config is None
    assert problems


def test_an_empty_list_of_rewards_says_what_is_needed() -> None:
    assert "give at least 1" in problems_by_field({"rewards": []})["rewards"]


def test_what_is_right_can_still_be_checked_when_a_field_is_wrong() -> None:
    inspected = inspect({"algorithm": {"group_size": 1}, "model": {"id": "elsewhere/model"}})
    assert inspected.config is None
    assert inspected.repaired is not None
    assert inspected.repaired.model.id == "elsewhere/model"
    assert inspected.is_wrong("algorithm.group_size")
    assert inspected.is_wrong("algorithm")
    assert not inspected.is_wrong("model.id")


def test_cispo_gets_its_own_bound_and_a_shrinking_one_is_refused() -> None:
    cispo = RunConfig.model_validate({"algorithm": {"loss_type": "cispo"}})
    assert cispo.effective_epsilon_high() == 5.0
    assert RunConfig().effective_epsilon_high() == 0.2
    small = {"algorithm": {"loss_type": "cispo", "epsilon_high": 0.2}}
    assert "shrinks" in problems_by_field(small)["algorithm.epsilon_high"]


def test_a_warm_up_that_the_schedule_does_not_have_is_refused() -> None:
    assert "algorithm.warmup_ratio" in problems_by_field({"algorithm": {"warmup_ratio": 0.1}})
    assert problems_by_field({"algorithm": {"warmup_ratio": 0.1, "lr_schedule": "linear"}}) == {}


def test_a_limit_counts_before_the_held_out_rows_of_a_file_but_not_of_the_builtin_set() -> None:
    assert problems_by_field({"dataset": {"limit": 20, "held_out": 20}}) == {}
    assert "dataset.limit" in problems_by_field({"dataset": {"source": "rows.jsonl", "limit": 20, "held_out": 20}})


@pytest.mark.parametrize(("steps", "iterations", "completions"), [(4, 1, 128), (4, 2, 64), (5, 2, 96)])
def test_completions_in_all_count_the_last_batch_too(steps: int, iterations: int, completions: int) -> None:
    config = RunConfig.model_validate({"algorithm": {"steps": steps, "num_iterations": iterations}})
    assert config.derived()["completions_total"] == completions
