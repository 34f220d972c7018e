"""A branch begins with the weights and moments of a checkpoint, and by its own settings from there on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from resumed_here import Runs, begin, completions, events, metrics, runs_in

from grpo_studio.errors import CheckpointError
from grpo_studio.store.folder import RunFolder

AT = 5


@pytest.fixture(scope="module")
def runs(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return runs_in(tmp_path_factory.mktemp("home"), tiny_model)


@pytest.fixture(scope="module")
def parent(runs: Runs) -> RunFolder:
    return runs.left_alone("checkpoint.keep=9")


def branched(runs: Runs, parent: RunFolder, *overrides: str) -> RunFolder:
    """A run that begins as `branch` lets it begin."""
    folder = runs.create("checkpoint.keep=9", *overrides)
    shutil.copytree(parent.checkpoints / f"checkpoint-{AT}", folder.checkpoints / f"checkpoint-{AT}")
    begin(folder, AT, attempt=1)
    return folder


def by_step(folder: RunFolder, name: str) -> dict[int, float | None]:
    return {step: value for (found, step), value in sorted(metrics(folder).items()) if found == name}


@pytest.fixture(scope="module")
def slower(runs: Runs, parent: RunFolder) -> RunFolder:
    """A tenth of the learning rate, constant."""
    folder = branched(runs, parent, "algorithm.learning_rate=1e-3", "algorithm.lr_schedule=constant")
    runs.attempt(folder)
    return folder


def test_learning_rate_and_schedule_are_those_of_the_branch(slower: RunFolder) -> None:
    assert by_step(slower, "optim/lr") == {step: pytest.approx(1e-3) for step in range(6, 13)}
    optimizer = torch.load(slower.checkpoints / "checkpoint-10" / "optimizer.pt", weights_only=True)
    assert [group["lr"] for group in optimizer["param_groups"]] == [1e-3] * len(optimizer["param_groups"])


def test_the_next_step_samples_what_the_parent_sampled(parent: RunFolder, slower: RunFolder) -> None:
    """Weights and randomness are the checkpoint's; the update after it is the branch's own."""
    here, there = ([row for row in completions(run) if row[0] == 6 and row[1] == "train"] for run in (slower, parent))
    assert here == there != []
    last = [[row for row in completions(run) if row[0] == 12 and row[1] == "train"] for run in (slower, parent)]
    assert last[0] != last[1]


def test_the_baseline_of_a_branch_is_that_of_its_checkpoint(slower: RunFolder) -> None:
    assert sorted(by_step(slower, "eval/reward")) == [AT, 12]
    manifest = json.loads((slower.checkpoints / "checkpoint-10" / "checkpoint.json").read_text())
    assert manifest["baseline"]["eval/reward"] == by_step(slower, "eval/reward")[AT]
    assert ("training_started", "training from checkpoint-5 for 12 steps") in events(slower, 1)


def test_moments_of_the_optimizer_are_kept(runs: Runs, parent: RunFolder) -> None:
    """With the parent's own settings a branch is the parent."""
    same = branched(runs, parent)
    runs.attempt(same)
    for name in ("optim/loss", "optim/grad_norm", "optim/lr", "reward/mean"):
        expected = by_step(parent, name)
        assert by_step(same, name) == {step: expected[step] for step in range(6, 13)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "overrides",
    [
        ("algorithm.group_size=2",),
        ("algorithm.prompts_per_step=3", "algorithm.steps=20"),
        ("dataset.limit=9",),
        ("algorithm.max_completion_length=3",),
        ("algorithm.num_iterations=2", "algorithm.beta=0.1"),
    ],
    ids=str,
)
def test_a_branch_may_sample_otherwise(runs: Runs, parent: RunFolder, overrides: tuple[str, ...]) -> None:
    folder = branched(runs, parent, *overrides)
    outcome = runs.attempt(folder)
    settings = runs.config(*overrides).algorithm
    assert outcome is not None
    assert outcome.step == settings.steps
    assert list(by_step(folder, "optim/loss")) == list(range(6, settings.steps + 1))
    assert 6 in by_step(folder, "reward/mean"), "the first step of a branch that samples otherwise samples"
    assert len([row for row in completions(folder) if row[:2] == (6, "train")]) == (
        settings.group_size * settings.prompts_per_step
    )


@pytest.mark.slow
def test_the_batch_at_hand_is_used_on_unless_the_branch_samples_otherwise(runs: Runs) -> None:
    """The checkpoint of step 5 lies after the first of two uses of a batch."""
    twice = ("algorithm.num_iterations=2", "checkpoint.keep=9")
    parent = runs.left_alone(*twice)
    kept, anew = (
        branched(runs, parent, *twice, "algorithm.learning_rate=1e-3"),
        branched(runs, parent, *twice, "algorithm.temperature=0.5"),
    )
    for folder in (kept, anew):
        runs.attempt(folder)
    assert min(by_step(kept, "reward/mean")) == 7
    assert list(by_step(anew, "reward/mean")) == [6, 7, 9, 11]


def test_a_branch_that_cannot_begin_says_why(runs: Runs, parent: RunFolder) -> None:
    with pytest.raises(CheckpointError, match=r"a branch keeps .* algorithm\.optimizer adamw_torch\S* -> sgd"):
        runs.attempt(branched(runs, parent, "algorithm.optimizer=sgd"))
    with pytest.raises(CheckpointError, match=r"algorithm\.steps is 5, and checkpoint-5 has them behind it; use more"):
        runs.attempt(branched(runs, parent, "algorithm.steps=5"))
