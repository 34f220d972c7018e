"""LoRA and QLoRA on the tiny model: what trains, what the reference is, what is refused; and runs that change nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from studio_process import as_json, studio
from trained_here import Train, trainer_of

from grpo_studio.errors import ConfigError, TrainingError
from grpo_studio.settings import Settings

# transformers, trl and torch warn about their own deprecations and about training on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")
MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


@pytest.fixture
def train(tiny_model: Path, settings: Settings) -> Train:
    return trainer_of(tiny_model, settings)


@pytest.mark.parametrize("backend", ["liger", "trl", "full"])
def test_lora_trains_the_adapter_and_saves_it_alone(train: Train, backend: str) -> None:
    run = train("memory.adapter=lora", "memory.lora_rank=4", f"memory.loss_backend={backend}")
    facts = run.data("setup")
    # rank x (in + out) of the seven linear modules of a layer, hidden 32, intermediate 64, key and value width 16
    of_a_layer = 4 * ((32 + 32) * 2 + (32 + 16) * 2 + (32 + 64) * 3)
    assert facts["trainable_parameters"] == 2 * of_a_layer
    assert facts["trainable_parameters"] < facts["parameters"]
    assert facts["versions"].keys() >= {"python", "grpo_studio", "torch", "transformers", "trl", "peft"}
    assert facts["card"] == (torch.cuda.get_device_name() if torch.cuda.is_available() else None)
    saved = run.folder.checkpoints / "final"
    assert (saved / "adapter_model.safetensors").is_file()
    assert not (saved / "model.safetensors").exists()
    assert run.metrics["optim/grad_norm"][1] > 0


def test_named_targets_get_an_adapter_and_no_others(train: Train) -> None:
    run = train("memory.adapter=lora", "memory.lora_targets=q_proj, v_proj")
    adapter = json.loads((run.folder.checkpoints / "final" / "adapter_config.json").read_text())
    assert sorted(adapter["target_modules"]) == ["q_proj", "v_proj"]


def test_the_head_gets_no_adapter_with_all_linear(train: Train) -> None:
    run = train("memory.adapter=lora")
    adapter = json.loads((run.folder.checkpoints / "final" / "adapter_config.json").read_text())
    assert {name.rpartition(".")[2] for name in adapter["target_modules"]} == set(MODULES)


def test_unknown_targets_are_refused_with_the_model_s_own_names(train: Train) -> None:
    with pytest.raises(
        ConfigError, match=r"names c_attn, which .* does not have; use all-linear, or some of q_proj, k_proj"
    ):
        train("memory.adapter=lora", "memory.lora_targets=q_proj,c_attn")


def test_check_finds_unknown_targets_before_anything_is_loaded(tiny_model: Path, tmp_path: Path) -> None:
    result = studio(
        "check", "--preset", "quickstart", "--set", f"model.id={tiny_model}", "--set", "memory.adapter=lora",
        "--set", "memory.lora_targets=c_attn", "--json", home=tmp_path,
    )  # fmt: skip
    assert result.returncode == 1
    [problem] = as_json(result)["problems"]
    assert problem["field"] == "memory.lora_targets"
    assert "no linear module named c_attn" in problem["message"]
    assert all(name in problem["fix"] for name in MODULES)


def test_the_reference_under_lora_is_the_model_without_its_adapter(train: Train) -> None:
    run = train("memory.adapter=lora", "algorithm.beta=0.1", "algorithm.learning_rate=0.05", "algorithm.steps=3")
    kl = run.metrics["policy/kl"]
    assert kl[1] == pytest.approx(0.0, abs=1e-6)  # a fresh adapter adds nothing
    assert kl[3] > 1e-6
    assert run.metrics["time/reference"][1] > 0


def test_gradients_reach_the_adapter_with_checkpointing(train: Train) -> None:
    plain = train("memory.adapter=lora")
    saving = train("memory.adapter=lora", "memory.gradient_checkpointing=true")
    assert saving.metrics["optim/grad_norm"][1] == pytest.approx(plain.metrics["optim/grad_norm"][1], rel=1e-4)


def test_qlora_trains_beside_four_bit_weights_and_warns_on_a_cpu(train: Train) -> None:
    run = train("memory.adapter=qlora", "memory.lora_rank=4", "algorithm.beta=0.04")
    assert run.metrics["optim/grad_norm"][1] > 0
    assert run.metrics["policy/kl"][1] is not None
    assert "slow_quantization" in [kind for kind, *_ in run.events]


def test_a_run_whose_groups_are_all_dead_has_learned_nothing_and_fails(train: Train) -> None:
    with pytest.raises(TrainingError, match="nothing was learned in 2 steps: no completion had an advantage"):
        train("rewards=[{verifier: regex_match, params: {pattern: '', match: search}}]")


def test_updates_that_are_rounded_away_are_no_success(train: Train) -> None:
    with pytest.raises(TrainingError, match=r"no trainable weight has changed; use a larger learning rate than 1e-30"):
        train("algorithm.learning_rate=1e-30")
