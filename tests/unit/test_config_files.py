"""Presets, YAML and --set."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.config_files import (
    dump_config,
    parse_config,
    preset_names,
    read_config_file,
    read_preset,
    with_overrides,
)
from grpo_studio.errors import ConfigError, UsageError
from grpo_studio.rules import inspect
from grpo_studio.settings import BUNDLED_PRESETS


def test_every_bundled_preset_is_a_configuration_without_problems() -> None:
    names = preset_names([BUNDLED_PRESETS])
    assert "quickstart" in names
    for name in names:
        inspected = inspect(read_preset(name, [BUNDLED_PRESETS]))
        config, problems = inspected.config, inspected.problems
        assert problems == []
        assert config is not None


def test_unknown_preset_suggests_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean quickstart"):
        read_preset("quickstrat", [BUNDLED_PRESETS])


def test_a_config_survives_the_way_through_yaml() -> None:
    config = RunConfig.model_validate({"algorithm": {"learning_rate": 1e-5}, "dataset": {"system_prompt": "a: b\n#c"}})
    assert RunConfig.model_validate(parse_config(dump_config(config), "test")) == config


def test_overrides_change_nested_settings_and_list_entries() -> None:
    raw = {"rewards": [{"verifier": "math_numeric"}], "algorithm": {"steps": 3}}
    changed = with_overrides(
        raw, ["algorithm.steps=9", "rewards.0.weight=2.5", "dataset.columns.prompt=question", "model.revision="]
    )
    assert changed["algorithm"]["steps"] == 9
    assert changed["rewards"][0]["weight"] == 2.5
    assert changed["dataset"]["columns"]["prompt"] == "question"
    assert changed["model"]["revision"] is None
    assert raw["algorithm"]["steps"] == 3


def test_numbers_in_scientific_notation_without_a_dot_are_numbers() -> None:
    inspected = inspect(with_overrides({}, ["algorithm.learning_rate=1e-5"]))
    config, problems = inspected.config, inspected.problems
    assert problems == []
    assert config is not None
    assert config.algorithm.learning_rate == 1e-5


@pytest.mark.parametrize("override", ["steps", "=3", "algorithm.steps.more.deep=1=2=", "rewards.9.weight=1"])
def test_malformed_overrides_are_refused_or_found(override: str) -> None:
    raw = {"rewards": [{"verifier": "math_numeric"}], "algorithm": {"steps": 3}}
    try:
        problems = inspect(with_overrides(raw, [override])).problems
    except (UsageError, ConfigError):
        return
    assert problems


@pytest.mark.parametrize(
    "text",
    [
        "- a\n- b",
        "a: [1, 2",
        "just text",
        "a: &x [1]\nb: [*x, *x]",
        "!!python/object/apply:os.system ['true']",
        "[" * 5000,
    ],
)
def test_hostile_or_broken_yaml_is_one_clear_error(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "their.yaml")
    assert "\n" not in str(caught.value)
    assert "their.yaml" in str(caught.value)


def test_missing_binary_and_huge_files_are_refused(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00\x81")
    huge = tmp_path / "huge.yaml"
    huge.write_text("#" * 1_100_000)
    for path in (tmp_path / "none.yaml", binary, huge, tmp_path):
        with pytest.raises(ConfigError):
            read_config_file(path)


@pytest.mark.parametrize(
    ("override", "field", "value"),
    [
        ("dataset.prompt_template=#### {prompt}", "prompt_template", "#### {prompt}"),
        ("dataset.prompt_template=Question: {prompt}", "prompt_template", "Question: {prompt}"),
        ("dataset.system_prompt=Answer after #### only", "system_prompt", "Answer after #### only"),
        ("dataset.config=2", "config", "2"),
        ("dataset.config=", "config", None),
        ("dataset.source=007", "source", "007"),
    ],
)
def test_text_settings_are_taken_as_they_stand(override: str, field: str, value: str | None) -> None:
    config = inspect(with_overrides({}, [override])).config
    assert config is not None
    assert getattr(config.dataset, field) == value


def test_a_number_in_a_yaml_file_will_do_for_text() -> None:
    config = inspect(parse_config("dataset: {config: 2}", "test")).config
    assert config is not None
    assert config.dataset.config == "2"


def test_names_of_rewards_are_text_and_their_params_are_not() -> None:
    raw = with_overrides(
        {"rewards": [{"verifier": "regex_match"}]}, ["rewards.0.name=12", "rewards.0.params={pattern: '1'}"]
    )
    assert raw["rewards"][0] == {"verifier": "regex_match", "name": "12", "params": {"pattern": "1"}}
