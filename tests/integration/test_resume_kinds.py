"""Whatever there is to remember between two steps is remembered: batches used twice, later epochs, adapters, state."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from resumed_here import Runs, assert_same, begin, metrics, runs_in
from safetensors.torch import load_file
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from grpo_studio.config_files import dump_config
from grpo_studio.store.folder import RunFolder

FEW_ROWS = "dataset.limit=9"
"""With three of them held out, six rows are three batches of two: an epoch ends every three steps."""


@pytest.fixture(scope="module")
def runs(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return runs_in(tmp_path_factory.mktemp("home"), tiny_model)


def same_as_alone(runs: Runs, killed_at: int, checkpoint: int, *overrides: str) -> RunFolder:
    alone = runs.left_alone(*overrides)
    resumed = runs.killed_and_resumed(killed_at, checkpoint, *overrides)
    assert_same(resumed, alone)
    assert max(step for name, step in metrics(alone) if name == "optim/loss") == runs.config(*overrides).algorithm.steps
    return resumed


def test_a_batch_used_twice_goes_on_after_a_checkpoint_amid_its_uses_in_a_later_epoch(runs: Runs) -> None:
    """Six steps an epoch; the checkpoint of step 9 lies in the second, after the first of two uses of a batch."""
    overrides = ("algorithm.num_iterations=2", "checkpoint.every=9", "memory.micro_batch=4", FEW_ROWS)
    resumed = same_as_alone(runs, 11, 9, *overrides)
    sampled = {step for name, step in metrics(resumed) if name == "reward/mean"}
    assert sampled == {1, 3, 5, 7, 9, 11}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("killed_at", "checkpoint", "overrides"),
    [
        (8, 6, ("checkpoint.every=6", FEW_ROWS)),  # the very end of the second epoch
        (9, 7, ("checkpoint.every=7", FEW_ROWS)),
        (7, 5, ("algorithm.num_iterations=3", "memory.micro_batch=2")),
        (7, 5, ("memory.adapter=lora", "memory.lora_rank=4", "memory.lora_dropout=0.1", "algorithm.beta=0.1")),
        (7, 5, ("algorithm.beta=0.1", "algorithm.num_iterations=2")),
        (7, 5, ("algorithm.beta=0.1", "algorithm.extra={sync_ref_model: true, ref_model_sync_steps: 3}")),
        (7, 5, ("algorithm.extra={use_adaptive_entropy: true, entropy_target: 5.0}",)),
        (7, 5, ("memory.loss_backend=trl", "algorithm.lr_schedule=cosine", "algorithm.warmup_ratio=0.5")),
        (7, 5, ("memory.loss_backend=full", "memory.skip_dead_groups=false", "algorithm.optimizer=sgd")),
        (7, 5, ("memory.gradient_checkpointing=true", "evaluation.every=2", "evaluation.samples=3")),
        (7, 5, ("algorithm.extra={shuffle_dataset: false}", FEW_ROWS)),
        (7, 5, ("algorithm.extra={dataloader_num_workers: 1}", FEW_ROWS)),
        (2, 1, ("checkpoint.every=1", "algorithm.steps=2")),
    ],
    ids=str,
)
def test_of_each_kind_of_run(runs: Runs, killed_at: int, checkpoint: int, overrides: tuple[str, ...]) -> None:
    same_as_alone(runs, killed_at, checkpoint, *overrides)


@pytest.mark.slow
def test_a_mixture_of_experts_whose_weights_go_by_other_names_on_the_disk(
    runs: Runs, tiny_model: Path, tmp_path: Path
) -> None:
    mixture = Path(shutil.copytree(tiny_model, tmp_path / "mixture"))
    config = Qwen3MoeConfig.from_pretrained(
        tiny_model, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, head_dim=8
    )
    Qwen3MoeForCausalLM(config).save_pretrained(mixture)
    same_as_alone(runs, 7, 5, f"model.id={mixture}", "memory.loss_backend=trl")


@pytest.mark.slow
def test_killed_again_and_again(runs: Runs) -> None:
    folder = runs.create("checkpoint.every=2")
    assert runs.attempt(folder, killed_at=4) is None
    for attempt, (checkpoint, killed_at) in enumerate([(2, 6), (4, 7), (6, 8)], 2):
        begin(folder, checkpoint, attempt)
        assert runs.attempt(folder, attempt, killed_at=killed_at) is None
    runs.resume(folder, 6, attempt=5)
    assert_same(folder, runs.left_alone("checkpoint.every=2"))


@pytest.mark.slow
def test_checkpoints_may_come_more_often_after_a_resume(runs: Runs) -> None:
    folder = runs.create("checkpoint.every=5", "checkpoint.keep=20")
    assert runs.attempt(folder, killed_at=7) is None
    folder.config_path_of(2).write_text(dump_config(runs.config("checkpoint.every=2", "checkpoint.keep=20")))
    runs.resume(folder, 5)
    names = sorted(entry.name for entry in folder.checkpoints.iterdir())
    assert names == sorted(["final", *(f"checkpoint-{step}" for step in (5, 6, 8, 10, 12))])


@pytest.mark.slow
def test_a_checkpoint_of_an_adapter_holds_the_adapter_alone(runs: Runs) -> None:
    folder = runs.left_alone("memory.adapter=lora", "algorithm.steps=2", "checkpoint.every=1")
    checkpoint = folder.checkpoints / "checkpoint-1"
    assert not (checkpoint / "model.safetensors").exists()
    assert all("lora" in name for name in load_file(checkpoint / "adapter_model.safetensors"))
    assert json.loads((checkpoint / "run_state.json").read_text())["live_steps"] in (0, 1)
