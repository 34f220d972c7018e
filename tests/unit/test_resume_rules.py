"""Which settings a resume and a branch may change, and how two sets of settings differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.declaration import fields_of
from grpo_studio.resume_rules import (
    FREE,
    KEPT_BY_A_BRANCH,
    changes,
    config_hash,
    flat,
    named_by,
    refusal,
    refusal_of_branch,
    settings_that_matter,
)


def config(**sections: Any) -> RunConfig:
    return RunConfig.model_validate(sections)


def saved(**sections: Any) -> dict[str, Any]:
    """Settings as they come back from a manifest."""
    settings: dict[str, Any] = json.loads(json.dumps(settings_that_matter(config(**sections))))
    return settings


def test_flat_names_every_setting_once() -> None:
    assert list(flat(config())) == list(fields_of(RunConfig))


@pytest.mark.parametrize("name", [*FREE, *KEPT_BY_A_BRANCH])
def test_each_rule_names_a_setting_that_there_is(name: str) -> None:
    assert any(named_by((name,), field) for field in fields_of(RunConfig))


def test_the_hash_does_not_depend_on_how_the_settings_were_written() -> None:
    plain = config()
    written = config(rewards=[{"weight": 1, "verifier": "math_numeric"}], algorithm={"seed": plain.algorithm.seed})
    assert config_hash(written) == config_hash(plain)
    one = config(algorithm={"extra": {"weight_decay": 0.1, "adam_beta1": 0.8}})
    other = config(algorithm={"extra": {"adam_beta1": 0.8, "weight_decay": 0.1}})
    assert config_hash(one) == config_hash(other) != config_hash(plain)


def test_free_settings_change_neither_hash_nor_resume() -> None:
    other = config(
        limits={"hours": 3}, checkpoint={"every": 7, "keep": 9}, evaluation={"every": 2}, report={"to": "tensorboard"}
    )
    assert config_hash(other) == config_hash(config())
    assert refusal(saved(), other) is None
    assert refusal_of_branch(saved(), other) is None


def test_a_resume_names_the_first_settings_that_differ_and_the_way_out() -> None:
    other = config(algorithm={"group_size": 16, "learning_rate": 0.5, "seed": 3, "steps": 7})
    message = refusal(saved(), other)
    assert message is not None
    assert "algorithm.group_size 8 -> 16" in message
    assert "and 1 more" in message
    assert "branch RUN --step K" in message.rpartition("; ")[2]
    assert refusal_of_branch(saved(), other) is None


@pytest.mark.parametrize(
    ("section", "field", "value"),
    [
        ("model", "id", "other"),
        ("model", "dtype", "float32"),
        ("memory", "adapter", "lora"),
        ("memory", "lora_rank", 3),
        ("algorithm", "optimizer", "sgd"),
        ("scale", "processes", 2),
        ("scale", "strategy", "ddp"),
    ],
)
def test_a_branch_keeps_what_its_weights_were_made_with(section: str, field: str, value: Any) -> None:
    message = refusal_of_branch(saved(), config(**{section: {field: value}}))
    assert message is not None
    assert f"{section}.{field}" in message


def test_data_and_rewards_can_change_in_a_branch_alone() -> None:
    other = config(dataset={"limit": 5}, rewards=[{"verifier": "math_equal", "params": {"a": [1, {"b": None}]}}])
    assert refusal_of_branch(saved(), other) is None
    message = refusal(saved(), other)
    assert message is not None
    assert "dataset.limit empty -> 5" in message


def test_settings_that_another_version_did_not_have() -> None:
    older = saved()
    del older["algorithm.min_p"], older["memory.chunk_size"]
    assert refusal(older, config()) is None
    assert refusal({**older, "algorithm.forgotten": None}, config()) is None
    changed = refusal(older, config(algorithm={"min_p": 0.5}))
    assert changed is not None
    assert "algorithm.min_p" in changed
    newer = refusal({**saved(), "algorithm.from_the_future": 3}, config())
    assert newer is not None
    assert "algorithm.from_the_future 3 -> empty" in newer


@pytest.mark.parametrize("odd", [{"a\n; b\x1b[31m": "x; y\n" * 200}, {"": [[]]}, {"algorithm.seed": {"deep": {}}}])
def test_hostile_settings_are_told_in_one_line(odd: dict[str, Any]) -> None:
    message = refusal({**saved(), **odd}, config())
    assert message is not None
    assert message.isprintable()
    assert len(message) < 600
    assert message.count("; ") == 1


def test_changes_are_in_the_order_of_the_settings() -> None:
    assert [str(one) for one in changes({"a": 1, "b": None}, {"b": "x", "c": 2, "a": 1.0})] == [
        "b empty -> x",
        "c empty -> 2",
    ]
