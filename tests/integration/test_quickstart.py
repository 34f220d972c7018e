"""The product's one real path: the built-in model from the package registry, two steps of the quickstart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from studio_process import as_json, studio

from grpo_studio.catalog import BUILTIN_MODELS, CONVERTED_MARK, converted_folder
from grpo_studio.config import BUILTIN_MODEL, RunConfig
from grpo_studio.config_files import read_preset
from grpo_studio.preview import preview
from grpo_studio.settings import BUNDLED_PRESETS, Settings

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def run(home: Path) -> dict[str, Any]:
    small = ("algorithm.steps=2", "algorithm.group_size=4", "dataset.held_out=4")
    sets = [part for one in small for part in ("--set", one)]
    result = studio("train", "--preset", "quickstart", *sets, "--wait", "--json", home=home, timeout=390)
    assert result.returncode == 0, result.stderr
    return as_json(result)


@pytest.fixture
def converted(home: Path, run: dict[str, Any]) -> Path:
    return converted_folder(BUILTIN_MODELS[BUILTIN_MODEL], home / "cache")


def test_two_steps_end_finished_and_the_sums_agree(run: dict[str, Any]) -> None:
    assert (run["state"], run["step"]) == ("finished", 2)
    assert (run["groups"], run["completions"]) == (8, 32)


def test_the_model_is_real(run: dict[str, Any]) -> None:
    """A model that speaks: some answers end at its end token, and some are right."""
    assert run["metrics"]["completion/length_mean"] <= 12
    assert run["metrics"]["policy/entropy"] < 3
    assert run["metrics"]["optim/grad_norm"] > 0


def test_the_converted_tokenizer_has_the_models_own_end_token(converted: Path) -> None:
    """The GGUF converter of transformers takes <|im_start|> for the end token; generation would never end."""
    tokenizer = json.loads((converted / "tokenizer_config.json").read_text())
    generation = json.loads((converted / "generation_config.json").read_text())
    assert tokenizer["eos_token"] == "<|im_end|>"
    assert (generation["eos_token_id"], generation["pad_token_id"]) == (2, 0)


def test_the_converted_folder_carries_checksums(converted: Path) -> None:
    mark = json.loads((converted / CONVERTED_MARK).read_text())
    assert {"model.safetensors", "tokenizer.json", "config.json"} <= set(mark["files"])
    assert [path.name for path in converted.parent.iterdir()] == [converted.name]


def test_prompts_are_shown_as_the_model_sees_them(home: Path, run: dict[str, Any]) -> None:
    config = RunConfig.model_validate(read_preset("quickstart", [BUNDLED_PRESETS]))
    settings = Settings.from_env({"GRPO_STUDIO_HOME": str(home), "GRPO_STUDIO_CACHE": str(home / "cache")})
    prompts = preview(config, settings)
    assert len(prompts) == 3
    for prompt in prompts:
        assert prompt.text.startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is ")
        assert prompt.text.endswith("<|im_start|>assistant\n")
        assert prompt.tokens > 10
        assert prompt.answer is not None
