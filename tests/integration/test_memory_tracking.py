"""Counting the bytes of all tensors changes nothing but the time: real trainer, tiny model, one thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from studio_process import as_json, tiny_train
from trained_here import Trained, trainer_of

from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader

# transformers, trl and torch warn about their own deprecations and about training on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def trained(tiny_model: Path, settings: Settings) -> Callable[..., Trained]:
    return trainer_of(tiny_model, settings)


@pytest.mark.parametrize(
    "overrides",
    [
        ["memory.gradient_checkpointing=true", "memory.micro_batch=2", "algorithm.beta=0.1"],
        pytest.param(["memory.adapter=lora", "memory.loss_backend=trl"], marks=pytest.mark.slow),
        pytest.param(["memory.adapter=lora", "memory.gradient_checkpointing=true"], marks=pytest.mark.slow),
        pytest.param(["memory.loss_backend=full", "evaluation.every=2", "dataset.held_out=4"], marks=pytest.mark.slow),
        pytest.param(["model.dtype=mixed", "algorithm.num_iterations=2"], marks=pytest.mark.slow),
    ],
    ids=["checkpointing", "lora", "lora-checkpointing", "full-evaluated", "mixed-reused"],
)
def test_counting_tensors_changes_no_result_and_keeps_none_alive(
    trained: Callable[..., Trained], overrides: list[str]
) -> None:
    plain = trained("algorithm.steps=6", *overrides)
    counted = trained("algorithm.steps=6", "memory.track_tensors=true", *overrides)
    assert _weights(counted.folder) == _weights(plain.folder)
    for name in ("reward/mean", "optim/loss", "optim/grad_norm"):
        assert counted.metrics[name] == plain.metrics[name], name
    resident, tensors = plain.metrics["memory/peak/loss"], counted.metrics["memory/peak/loss"]
    assert all((tensors[step] or 0) < (resident[step] or 0) / 10 for step in (1, 2, 3, 4)), "not tensor bytes"
    *before, last = (value or 0.0 for value in counted.metrics["memory/peak/rollout"].values())
    assert last < 1.1 * max(before[1:]), "tensors of a step outlived it"
    assert counted.data("memory_watched")["tensors"] is True
    assert [kind for kind, _, _ in counted.events].count("tensors_tracked") == 1
    with RunReader(counted.folder.database) as reader:
        [(least, devices)] = reader.rows("SELECT min(allocated), count(DISTINCT device) FROM memory_sample")
    assert least > 0
    assert devices == 1


def test_on_a_cpu_a_run_that_asks_for_a_snapshot_says_that_there_is_none(trained: Callable[..., Trained]) -> None:
    run = trained("memory.snapshot=true", "algorithm.steps=1")
    assert [level for kind, level, _ in _with_levels(run.folder) if kind == "memory_snapshot_failed"] == ["warning"]
    assert not (run.folder.path / "memory").exists()


@pytest.mark.slow
def test_every_process_s_memory_is_recorded_with_its_name(tmp_path: Path, tiny_model: Path) -> None:
    two = ("--set", "scale.processes=2", "--set", "scale.strategy=ddp")
    shown = as_json(tiny_train(tiny_model, tmp_path, *two, "--set", "memory.track_tensors=true", "--wait"))
    assert shown["step"] == 3, shown["reason"]
    folder = RunFolder(tmp_path / "runs" / shown["run"])
    with RunReader(folder.database) as reader:
        rows = reader.rows(
            "SELECT device, step, max(allocated) FROM memory_sample WHERE phase = 'loss' GROUP BY device, step"
        )
        metric = dict(reader.rows("SELECT step, value FROM metric WHERE name = 'memory/peak/loss'"))
    assert {(device, step) for device, step, _ in rows} == {
        (f"cpu rank {rank}", step) for rank in (0, 1) for step in (1, 2, 3)
    }
    assert metric == {step: max(value for _, at, value in rows if at == step) for step in (1, 2, 3)}


def _weights(folder: RunFolder) -> dict[str, bytes]:
    files = sorted((folder.checkpoints / "final").glob("*.safetensors"))
    assert files
    return {file.name: file.read_bytes() for file in files}


def _with_levels(folder: RunFolder) -> list[tuple[str, str, str]]:
    with RunReader(folder.database) as reader:
        return [(event.kind, event.level, event.message) for event in reader.events()]
