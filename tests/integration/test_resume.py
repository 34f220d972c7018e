"""A run that was killed and goes on from its newest checkpoint is the run that was left alone, to the last digit."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from resumed_here import Runs, assert_same, events, metrics, runs_in
from safetensors.torch import load_file, save_file

from grpo_studio import disk
from grpo_studio.checkpoints import MANIFEST, whole_checkpoints
from grpo_studio.config_files import dump_config
from grpo_studio.errors import CheckpointError, DiskFullError
from grpo_studio.stopping import StopFlag
from grpo_studio.store.folder import RunFolder
from grpo_studio.training import checkpointing

EVALUATED = ("evaluation.every=5", "evaluation.samples=2", "checkpoint.keep=9")


@pytest.fixture(scope="module")
def runs(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return runs_in(tmp_path_factory.mktemp("home"), tiny_model)


@pytest.fixture(scope="module")
def killed(runs: Runs) -> RunFolder:
    """Killed in step 7 and resumed from the checkpoint of step 5."""
    return runs.killed_and_resumed(7, 5, *EVALUATED)


def copied(folder: RunFolder, name: str) -> RunFolder:
    """The run as it is now, for a test that changes it."""
    return RunFolder(Path(shutil.copytree(folder.path, folder.path.with_name(f"{folder.run_id}-{name}"))))


def test_twelve_steps_killed_in_the_seventh_are_those_of_a_run_left_alone(runs: Runs, killed: RunFolder) -> None:
    alone = runs.left_alone(*EVALUATED)
    assert_same(killed, alone)
    assert {step for name, step in metrics(killed) if name == "optim/loss"} == set(range(1, 13))
    weights = [(folder.checkpoints / "final" / "model.safetensors").read_bytes() for folder in (killed, alone)]
    assert weights[0] == weights[1]


def test_the_baseline_stays_that_of_the_first_attempt(killed: RunFolder) -> None:
    scored = [message for kind, message in events(killed, 2) if kind == "evaluation"]
    assert [message.partition(":")[0] for message in scored] == [
        "3 held-out rows after step 10",
        "3 held-out rows after step 12",
    ]
    baselines = [one.manifest.baseline for one in whole_checkpoints(killed)]
    assert baselines[0]["eval/reward"] is not None
    assert all(baseline == baselines[0] for baseline in baselines)


def test_manifests_say_what_was_saved(killed: RunFolder) -> None:
    by_name = {one.name: one.manifest for one in whole_checkpoints(killed)}
    assert {name: (one.step, one.attempt, one.resumable) for name, one in by_name.items()} == {
        "checkpoint-5": (5, 1, True),
        "checkpoint-10": (10, 2, True),
        "checkpoint-12": (12, 2, True),
        "final": (12, 2, False),
    }
    scores = {step: value for (name, step), value in metrics(killed).items() if name == "eval/reward"}
    assert by_name["checkpoint-10"].score == scores[10]
    assert by_name["final"].score == scores[12]
    assert by_name["checkpoint-12"].score is None  # it was saved before the last evaluation


def test_a_resume_after_the_last_step_only_saves_and_scores(runs: Runs, killed: RunFolder) -> None:
    """As when there was no room for the final weights."""
    folder = copied(killed, "done")
    before = (folder.checkpoints / "final" / "model.safetensors").read_bytes()
    shutil.rmtree(folder.checkpoints / "final")
    outcome = runs.resume(folder, 12, attempt=3)
    assert outcome is not None
    assert outcome.step == 12
    assert (folder.checkpoints / "final" / "model.safetensors").read_bytes() == before
    assert max(step for _, step in metrics(folder)) == 12


def test_what_a_killed_worker_was_writing_is_gone(runs: Runs) -> None:
    folder = runs.create("algorithm.steps=1")
    (folder.checkpoints / ".saving-checkpoint-9" / "checkpoint-9").mkdir(parents=True)
    (folder.checkpoints / ".going-checkpoint-1").mkdir()
    runs.attempt(folder)
    assert sorted(entry.name for entry in folder.checkpoints.iterdir()) == ["checkpoint-1", "final"]


def test_a_stop_saves_a_checkpoint_to_go_on_from(runs: Runs) -> None:
    folder = runs.create("checkpoint.every=0", "algorithm.steps=3")
    outcome = runs.attempt(folder, stop=StopFlag(requested=True))
    assert outcome is not None
    assert (outcome.step, outcome.stopped) == (1, True)
    assert runs.resume(folder, 1) == replace(outcome, step=3, stopped=False)
    assert_same(folder, runs.left_alone("checkpoint.every=0", "algorithm.steps=3"))


def gone(path: Path) -> None:
    shutil.rmtree(path)


def half_written(path: Path) -> None:
    (path / MANIFEST).unlink()


def without_optimizer(path: Path) -> None:
    (path / "optimizer.pt").unlink()


def without_step(path: Path) -> None:
    state = path / "trainer_state.json"
    state.write_text("{}".ljust(state.stat().st_size))


def overwritten(name: str) -> Callable[[Path], None]:
    """The size is right, so that only reading it tells."""

    def damage(path: Path) -> None:
        (path / name).write_bytes(b"\x00" * (path / name).stat().st_size)

    return damage


def other_weights(path: Path) -> None:
    """Whole files, of another model."""
    weights = load_file(path / "model.safetensors")
    save_file({name: tensor * 1.01 for name, tensor in weights.items()}, path / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (gone, "there is no checkpoint checkpoint-10"),
        (half_written, "checkpoint-10 is half-written"),
        (without_optimizer, "checkpoint-10 is damaged: optimizer.pt is missing"),
        (without_step, "checkpoint-10 cannot be read: KeyError"),
        (overwritten("optimizer.pt"), "checkpoint-10 cannot be read"),
        (overwritten("process_state_0.pt"), "checkpoint-10 cannot be read"),
        (overwritten("rng_state.pth"), "checkpoint-10 cannot be read"),
        (overwritten("run_state.json"), "checkpoint-10 cannot be read"),
        (overwritten("model.safetensors"), "checkpoint-10 cannot be read"),
        (other_weights, "weights of checkpoint-10 did not reach the model"),
    ],
    ids=["gone", "half", "optimizer", "step", "moments", "process", "rng", "run", "weights", "other"],
)
def test_nothing_goes_on_from_a_damaged_checkpoint(
    runs: Runs, killed: RunFolder, damage: Callable[[Path], None], message: str, request: pytest.FixtureRequest
) -> None:
    folder = copied(killed, request.node.callspec.id)
    damage(folder.checkpoints / "checkpoint-10")
    with pytest.raises(CheckpointError, match=message):
        runs.resume(folder, 10, attempt=3)
    assert not any(name == "optim/loss" and step > 10 for name, step in metrics(folder))


def test_settings_that_matter_have_to_be_as_they_were(runs: Runs, killed: RunFolder) -> None:
    folder = copied(killed, "changed")
    changed = runs.config(*EVALUATED, "algorithm.group_size=2", "algorithm.seed=9", "memory.micro_batch=1")
    folder.config_path_of(3).write_text(dump_config(changed))
    with pytest.raises(CheckpointError, match=r"algorithm\.group_size 4 -> 2, algorithm\.seed 1 -> 9, memory\.micro"):
        runs.resume(folder, 10, attempt=3)


def test_the_training_rows_have_to_be_as_they_were(runs: Runs, tmp_path: Path) -> None:
    rows = [{"prompt": f"What is {n} + {n}?", "answer": 2 * n} for n in range(12)]
    data = tmp_path / "rows.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    folder = runs.create(f"dataset.source={data}", "dataset.held_out=0", "checkpoint.every=1")
    assert runs.attempt(folder, killed_at=2) is None
    data.write_text("\n".join(map(json.dumps, [*rows, {"prompt": "What is 90 + 1?", "answer": 91}])))
    with pytest.raises(CheckpointError, match=r"the data set has changed: it had 12 training rows .* and has 13 now"):
        runs.resume(folder, 1)
    rows[3]["answer"] = 7
    data.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(CheckpointError, match="the data set has changed: its 12 training rows are not those"):
        runs.resume(folder, 1, attempt=3)


def test_no_room_for_a_checkpoint_leaves_the_earlier_ones_and_says_so(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is this machine's; only how much is free on it is said otherwise."""
    folder = runs.create("checkpoint.every=2")
    monkeypatch.setattr(disk, "free_bytes", lambda path: 10**5 if (path / "checkpoint-2").exists() else 10**9)
    with pytest.raises(DiskFullError, match=r"the disk /.* is full: checkpoint-4 needs .* 100 KB is free; ") as caught:
        runs.attempt(folder)
    assert "; checkpoint-2 is whole, to resume from; free " in str(caught.value)
    assert [one.name for one in whole_checkpoints(folder)] == ["checkpoint-2"]
    monkeypatch.undo()
    runs.resume(folder, 2)
    assert_same(folder, runs.left_alone("checkpoint.every=2"))


def test_a_disk_that_fills_up_while_a_checkpoint_is_written_keeps_nothing_of_it(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = runs.create("checkpoint.every=2")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpointing, "save_run", full)  # the last file before the manifest
    with pytest.raises(DiskFullError, match=r"is full: checkpoint-2 .*; it has no earlier checkpoint; "):
        runs.attempt(folder)
    assert list(folder.checkpoints.iterdir()) == []


def test_which_checkpoints_a_run_keeps(runs: Runs) -> None:
    settings = ("algorithm.steps=7", "checkpoint.every=1", "checkpoint.keep=2", "checkpoint.keep_every=3")
    folder = runs.left_alone(*settings, "evaluation.every=2")
    scores = {step: value for (name, step), value in metrics(folder).items() if name == "eval/reward" and step % 2 == 0}
    del scores[0]
    best = max(scores, key=lambda step: (scores[step], step))
    assert {one.step for one in whole_checkpoints(folder)} == {3, 6, 7, best}
    assert not [entry for entry in folder.checkpoints.iterdir() if entry.name.startswith(".")]
