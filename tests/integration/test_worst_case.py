"""The worst-case step before the first one: nothing of it stays. And memory that runs out, in it or anywhere else."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from live_runs import ended
from resumed_here import assert_same, completions, events, metrics, runs_in
from safetensors.torch import load_file
from studio_process import ROOT, as_json, studio
from trained_here import Train, Trained, trainer_of

from grpo_studio.config import RunConfig
from grpo_studio.errors import OutOfMemoryError
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, create_run, run_folders
from grpo_studio.store.reader import RunReader
from grpo_studio.training import evaluation, session, worst_case, worst_case_batch
from grpo_studio.training import out_of_memory as telling
from grpo_studio.training.trainer import StudioTrainer

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch, on collectives and checkpoints on a CPU

REHEARSED = "memory.worst_case_step=true"
EVERYTHING = ("algorithm.beta=0.04", "algorithm.num_iterations=2", "memory.micro_batch=2", "dataset.held_out=3")
CASES = {
    "trl, all that a step can have": ("memory.loss_backend=trl", *EVERYTHING),
    "full, lora with dropout, checkpointing": (
        "memory.loss_backend=full", *EVERYTHING, "memory.adapter=lora", "memory.lora_dropout=0.3",
        "memory.gradient_checkpointing=true",
    ),
}  # fmt: skip
MORE = {
    "liger": ("memory.loss_backend=liger",),
    "liger, lora, reference": ("memory.loss_backend=liger", *EVERYTHING, "memory.adapter=lora"),
    "full, no adapter": ("memory.loss_backend=full", *EVERYTHING),
    "adafactor": ("algorithm.optimizer=adafactor",),
    "sgd, adaptive entropy": (
        "algorithm.optimizer=sgd", "memory.loss_backend=trl", "algorithm.extra={use_adaptive_entropy: true}",
    ),
    "mixed precision": ("model.dtype=mixed",),
    "sequences of two tokens": ("algorithm.importance_sampling_level=sequence", "algorithm.max_completion_length=2"),
    "tensors tracked": ("memory.track_tensors=true",),
}  # fmt: skip


@pytest.fixture
def train(tiny_model: Path, settings: Settings) -> Train:
    return trainer_of(tiny_model, settings)


def weights(folder: RunFolder) -> dict[str, bytes]:
    [file] = (folder.checkpoints / "final").glob("*.safetensors")
    return {name: value.numpy().tobytes() for name, value in load_file(file).items()}


def require_same(one: RunFolder, other: RunFolder) -> None:
    """Same metrics, texts and weights, byte for byte."""
    assert metrics(one) == metrics(other)
    assert completions(one) == completions(other)
    assert weights(one) == weights(other)


def kinds(run: Trained) -> list[str]:
    return [kind for kind, _, _ in run.events]


@pytest.mark.parametrize("case", [*CASES, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_a_run_is_the_same_byte_for_byte_with_and_without(train: Train, case: str) -> None:
    overrides = ("algorithm.steps=2", *(CASES | MORE)[case])
    without, rehearsed = train(*overrides), train(*overrides, REHEARSED)
    require_same(rehearsed.folder, without.folder)
    told = rehearsed.data("worst_case_step")
    assert told["peak_bytes"] == max(told["by_phase"].values())
    assert {"rollout", "loss", "optimizer"} <= set(told["by_phase"])
    assert ("reference" in told["by_phase"]) == ("algorithm.beta=0.04" in overrides)
    assert told["prompt_tokens"] == rehearsed.data("data_read")["longest_prompt"]
    assert told["notes"] == []
    order = kinds(rehearsed)
    assert order.index("setup") < order.index("worst_case_step") < order.index("training_started")
    assert not [kind for kind in kinds(without) if kind.startswith("worst_case")]
    with RunReader(rehearsed.folder.database) as reader:
        [(step,)] = reader.rows("SELECT DISTINCT step FROM memory_sample WHERE phase = 'rehearsal'")
        assert step == 0
        assert reader.rows("SELECT * FROM phase_time WHERE phase = 'rehearsal'") == []


def look(trainer: StudioTrainer) -> dict[str, Any]:
    """All that training goes on from, by value."""
    model, optimizer = trainer.model_wrapped, trainer.optimizer
    return {
        "weights": {name: value.detach().numpy().tobytes() for name, value in model.state_dict().items()},
        "buffers": {name: value.numpy().tobytes() for name, value in model.named_buffers()},
        "gradients": [parameter.grad for parameter in model.parameters()],
        "modes": [module.training for module in model.modules()],
        "reference": {name: value.numpy().tobytes() for name, value in trainer.ref_model.state_dict().items()},
        "optimizer": str(optimizer.state_dict()),
        "schedule": str(trainer.lr_scheduler.state_dict()),
        "random": (torch.get_rng_state().numpy().tobytes(), random.getstate(), str(numpy.random.get_state())),
        "progress": dict(vars(trainer.state)),
        "tally": trainer._tally._sums,
        "collected": str((trainer._metrics, trainer._logs, trainer._pending_metrics)),
        "counted": {
            name: value for name, value in vars(trainer).items() if isinstance(value, int | float | str | list | None)
        },
        "attributes": {name: id(value) for name, value in vars(trainer).items() if name not in REPLACED},
        "synced": trainer.accelerator.gradient_state.sync_gradients,
        "phases": trainer._clock.current,
        "hooks": [len(module._forward_hooks) for module in model.modules()],
    }


REPLACED = ("_metrics", "_logs", "_pending_metrics", "_pending_extra_logs", "_tally")


Looks = list[dict[str, Any]]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """What there is before and after the rehearsal, of a model whose rotary embedding remembers the longest sequence."""
    seen: Looks = []

    def watched(work: worst_case.Rehearsal) -> None:
        rotary = work.trainer.model.model.rotary_emb
        rotary.rope_type, rotary.max_seq_len_cached = "dynamic", 8
        rotary.config.rope_parameters["factor"] = 2.0
        seen.append(look(work.trainer) | {"rotary": rotary.max_seq_len_cached})
        worst_case.rehearse(work)
        seen.append(look(work.trainer) | {"rotary": rotary.max_seq_len_cached})

    monkeypatch.setattr(session, "rehearse", watched)
    return seen


def require_no_difference(looks: Looks) -> None:
    before, after = looks
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == []


def test_nothing_that_training_goes_on_from_differs(train: Train, looks: Looks) -> None:
    run = train(REHEARSED, *EVERYTHING, "algorithm.steps=1", "dataset.held_out=0")
    assert "worst_case_step" in kinds(run)
    require_no_difference(looks)


def test_what_cannot_be_rehearsed_is_a_warning_and_nothing_differs(
    train: Train, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails half way, with gradients there."""

    def fails(trainer: StudioTrainer, *arguments: object) -> None:
        torch.rand(3)
        assert any(parameter.grad is not None for parameter in trainer.model.parameters())
        raise ValueError("no such\nbatch")

    monkeypatch.setattr(worst_case, "rehearse_optimizer", fails)
    run = train(REHEARSED, *EVERYTHING, "algorithm.steps=1", "dataset.held_out=0")
    [message] = [message for kind, message, _ in run.events if kind == "worst_case_failed"]
    assert message == "the largest step could not be rehearsed, training begins without: ValueError: no such batch"
    require_no_difference(looks)


@pytest.mark.slow
def test_a_resumed_run_rehearses_anew_and_goes_on_the_same(tmp_path: Path, tiny_model: Path) -> None:
    """From the midst of a batch that is used twice, with the optimizer's state in memory."""
    runs = runs_in(tmp_path, tiny_model)
    overrides = ("algorithm.num_iterations=2", "memory.micro_batch=4", "algorithm.steps=6", "dataset.held_out=0")
    alone = runs.left_alone(*overrides)
    resumed = runs.killed_and_resumed(6, 5, *overrides, REHEARSED)
    assert_same(resumed, alone)
    assert weights(resumed) == weights(alone)
    assert "worst_case_step" in [kind for kind, _ in events(resumed, 2)]


# --- memory that runs out ---


def starve(*arguments: object, **more: object) -> Any:
    """What torch's own allocator raises when there is no memory."""
    return torch.empty(1 << 60, dtype=torch.uint8)


def starve_python(*arguments: object, **more: object) -> Any:
    return bytearray(1 << 62)


WHERE = {
    "loss": (StudioTrainer, "_compute_loss", starve, "in the loss (forward and backward) of step 1"),
    "rollout": (StudioTrainer, "_generate_single_turn", starve_python, "in the rollout of step 1"),
    "optimizer": (torch.optim.AdamW, "step", starve, "in the optimizer of step 1"),
    "evaluation": (evaluation, "complete", starve, "in the evaluation before step 1"),
    "loading": (session, "StudioTrainer", starve, "while loading "),
    "rehearsal": (worst_case_batch.Batch, "joined", starve, "in the rehearsal before step 1"),
}


@pytest.mark.parametrize(
    "place",
    [pytest.param(name, marks=pytest.mark.slow) if name in ("optimizer", "evaluation") else name for name in WHERE],
)
def test_memory_that_runs_out_is_told_with_its_place(
    train: Train, settings: Settings, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    owner, name, failure, words = WHERE[place]
    monkeypatch.setattr(owner, name, failure)
    monkeypatch.setattr(telling, "FORECAST_WITHIN", 0.0)  # then the line does without it
    with pytest.raises(OutOfMemoryError) as caught:
        train("dataset.held_out=3", f"memory.worst_case_step={str(place == 'rehearsal').lower()}")
    line = str(caught.value)
    assert line.startswith(f"out of memory {words}")
    assert ("asked for 1,152,921,505 GB with" in line) == (failure is starve)
    assert "\n" not in line
    assert "; use " in line
    [folder] = run_folders(settings.runs_dir)
    with RunReader(folder.database) as reader:
        assert reader.last_step() == 0


@pytest.fixture(scope="module")
def wide_model(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with a vocabulary of the usual size: 131 KB of logits a token."""
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("wide")
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig.from_pretrained(tiny_model, vocab_size=32_768)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(folder)
    return folder


def paths(home: Path) -> dict[str, str]:
    return {"GRPO_STUDIO_HOME": str(home), "GRPO_STUDIO_CACHE": str(home / "cache")}


def limited(home: Path, model: Path, room: int, *, rehearsed: bool, processes: int = 1) -> RunFolder:
    """A worker that may take `room` more bytes once its model is there, and makes all logits at once."""
    config = RunConfig.model_validate(
        {
            "model": {"id": str(model)},
            "dataset": {"held_out": 0},
            "rewards": [{"verifier": "regex_match", "params": {"pattern": "[a-m]", "match": "search"}}],
            "algorithm": {"steps": 3, "prompts_per_step": 16, "group_size": 16, "max_completion_length": 8},
            "memory": {
                "loss_backend": "full",
                "micro_batch": 256 // processes,
                "worst_case_step": rehearsed,
                "skip_dead_groups": False,
            },
            "scale": {"processes": processes, "strategy": "ddp" if processes > 1 else "none"},
        }
    )
    folder = create_run(home / "runs", config)
    path = os.pathsep.join([str(ROOT / "tests" / "memory_limits"), str(ROOT)])
    own = {**paths(home), "PYTHONPATH": path, "TORCHDYNAMO_DISABLE": "1", "ROOM": str(room)}
    with folder.log.open("ab") as log:
        subprocess.run(
            [sys.executable, "-m", "grpo_studio.worker", str(folder.path)],
            env={**os.environ, **own}, stdout=log, stderr=log, check=False, timeout=300, start_new_session=True,
        )  # fmt: skip
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("rehearsed", [False, True], ids=["found in step 1", "found in the rehearsal"])
def test_a_worker_out_of_memory_ends_failed_with_the_line(tmp_path: Path, wide_model: Path, rehearsed: bool) -> None:
    """Its address space is limited for real; the rollout fits, all logits at once do not."""
    folder = limited(tmp_path, wide_model, 600_000_000, rehearsed=rehearsed)
    [(kind, message)] = ended(folder)
    assert kind == "run_failed"
    place = "in the rehearsal before step 1, in the loss" if rehearsed else "in the loss (forward and backward) of step"
    assert message.startswith(f"out of memory {place}"), message
    assert "asked for 268 MB with " in message
    shown = as_json(studio("show", folder.run_id, "--json", home=tmp_path))
    assert (shown["state"], shown["step"]) == ("failed", 0)
    assert message in shown["reason"]
    if rehearsed:
        assert shown["groups"] == 0


@pytest.mark.slow
def test_the_process_that_ran_out_is_named_at_the_end_of_the_run(tmp_path: Path, wide_model: Path) -> None:
    folder = limited(tmp_path, wide_model, 300_000_000, rehearsed=True, processes=2)
    [(kind, message)] = ended(folder)
    assert kind == "run_failed"
    assert re.match(r"rank [01]: out of memory in the rehearsal before step 1", message), message
    assert "; before the first step; the other processes were ended; " in message
    assert message.rpartition("; ")[2].startswith(("set ", "use "))


@pytest.mark.slow
def test_two_processes_are_the_same_with_and_without(tmp_path: Path, tiny_model: Path) -> None:
    runs = [two_processes(tmp_path / name, tiny_model, name == "with") for name in ("with", "without")]
    require_same(*runs)
    with RunReader(runs[0].database) as reader:
        assert [event.kind for event in reader.events()].count("worst_case_step") == 1


def two_processes(home: Path, model: Path, rehearsed: bool) -> RunFolder:
    config = RunConfig.model_validate(
        {
            "model": {"id": str(model)},
            "dataset": {"held_out": 3},
            "rewards": [{"verifier": "regex_match", "params": {"pattern": "[a-m]", "match": "search"}}],
            "algorithm": {"steps": 3, "prompts_per_step": 4, "group_size": 4, "max_completion_length": 6, "beta": 0.04},
            "memory": {"micro_batch": 4, "worst_case_step": rehearsed},
            "scale": {"processes": 2, "strategy": "ddp"},
        }
    )
    folder = create_run(home / "runs", config)
    own = {**paths(home), "PYTHONPATH": str(ROOT), "TORCHDYNAMO_DISABLE": "1"}
    with folder.log.open("ab") as log:
        command = [sys.executable, "-m", "grpo_studio.worker", str(folder.path)]
        subprocess.run(command, env={**os.environ, **own}, stdout=log, stderr=log, timeout=200, start_new_session=True,
                       check=True)  # fmt: skip
    return folder
