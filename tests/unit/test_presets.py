"""Presets that ship: whole runs that are sound by themselves, say what they need, and name their sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_studio import config_files, preflight, rules
from grpo_studio.config import RunConfig
from grpo_studio.declaration import fields_of
from grpo_studio.errors import ConfigError
from grpo_studio.preset_about import read_about
from grpo_studio.settings import BUNDLED_PRESETS, Settings

NAMES = config_files.preset_names([BUNDLED_PRESETS])
OF_THE_HUB = {"model.id", "dataset.source"}


def test_the_presets_are_those_that_the_docs_name() -> None:
    assert set(NAMES) == {
        "quickstart", "gsm8k-qwen3-0.6b-lora", "gsm8k-qwen3-8b-qlora", "deepmath-qwen2.5-0.5b", "countdown-3b", "code-7b",
        "tldr-length",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_passes_check_offline_but_for_what_lies_on_the_hub(
    name: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    raw = config_files.read_preset(name, settings.presets_dirs)
    assert rules.inspect(raw).problems == []
    if raw.get("dataset", {}).get("source") == "builtin:countdown":
        raw["dataset"]["params"] = {"size": 500}  # as good as 10,000 here, and every gold is scored
    report = preflight.check(raw, settings)
    assert {problem.field for problem in report.problems} <= OF_THE_HUB
    assert all("HF_HUB_OFFLINE" in problem.message for problem in report.problems)


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_says_what_it_needs_and_where_its_numbers_come_from(name: str) -> None:
    about = read_about(name, [BUNDLED_PRESETS])
    assert about is not None
    assert "GPU" in about.hardware
    assert about.sources


def test_a_preset_that_describes_itself_wrongly_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "about: {title: Mine, purpose: x, hardware: y, sources: [{what: z, url: 'javascript:1'}]}\n"
    )
    with pytest.raises(ConfigError, match=r"preset mine describes itself wrongly: about\.sources\.0\.url") as caught:
        read_about("mine", [tmp_path])
    assert "\n" not in str(caught.value)


def test_a_preset_of_ones_own_need_not_describe_itself(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("algorithm: {steps: 3}\n")
    assert read_about("mine", [tmp_path]) is None
    assert config_files.read_preset("mine", [tmp_path]) == {"algorithm": {"steps": 3}}


def test_the_description_is_no_setting(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("about: {title: Mine, purpose: x, hardware: y}\nalgorithm: {steps: 3}\n")
    assert config_files.read_config_file(path) == {"algorithm": {"steps": 3}}


def test_hints_name_their_source() -> None:
    hinted = {}
    for name, info in fields_of(RunConfig).items():
        extra = info.json_schema_extra
        if isinstance(extra, dict) and extra["hints"]:
            hinted[name] = extra["hints"]
    assert {"algorithm.group_size", "algorithm.beta", "algorithm.learning_rate"} <= set(hinted)
    for hints in hinted.values():
        assert all(
            hint["text"].endswith(".") and hint["source"] and hint["url"].startswith("https://") for hint in hints
        )
