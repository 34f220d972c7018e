"""Which checkpoints of a run are whole, which one is meant, and which may go."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.checkpoint_files import clear_leftovers, discard, put_in_place, staging_of
from grpo_studio.checkpoints import (
    MANIFEST,
    Checkpoint,
    Manifest,
    find_checkpoint,
    newest_resumable,
    read_checkpoint,
    those_that_may_go,
    whole_checkpoints,
    write_manifest,
)
from grpo_studio.config import CheckpointSettings
from grpo_studio.errors import CheckpointError
from grpo_studio.store.folder import RunFolder


def made(folder: RunFolder, step: int, name: str | None = None, **more: Any) -> Path:
    """A checkpoint with two files, one of them below a folder."""
    path = folder.checkpoints / (name or f"checkpoint-{step}")
    (path / "shards").mkdir(parents=True)
    (path / "model.safetensors").write_bytes(b"weights")
    (path / "shards" / "optimizer.pt").write_bytes(b"moments")
    said: dict[str, Any] = {"attempt": 1, "resumable": name is None, "config_hash": "x", "settings": {"a": 1}}
    write_manifest(path, Manifest(step=step, **said | more))
    return path


def edited(path: Path, **changes: Any) -> None:
    document = json.loads((path / MANIFEST).read_text())
    (path / MANIFEST).write_text(json.dumps(document | changes))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def test_what_was_written_is_read_back(folder: RunFolder) -> None:
    path = made(folder, 5, score=0.5, baseline={"eval/reward": 0.25, "eval/x/mean": None}, versions={"torch": "2"})
    found = read_checkpoint(path)
    assert (found.name, found.step, found.manifest.score) == ("checkpoint-5", 5, 0.5)
    assert found.manifest.baseline == {"eval/reward": 0.25, "eval/x/mean": None}
    assert dict(found.manifest.files) == {"model.safetensors": 7, "shards/optimizer.pt": 7}
    assert found.bytes == 14


def test_missing_half_written_and_damaged_each_have_their_message(folder: RunFolder) -> None:
    for step in (1, 2, 3, 4):
        made(folder, step)
    checkpoints = folder.checkpoints
    (checkpoints / "checkpoint-1" / MANIFEST).unlink()
    (checkpoints / "checkpoint-2" / "model.safetensors").write_bytes(b"weigh")
    (checkpoints / "checkpoint-3" / "shards" / "optimizer.pt").unlink()
    shutil.copytree(checkpoints / "checkpoint-4", checkpoints / "checkpoint-6")
    for step, words in {
        1: "is half-written: it has no checkpoint.json",
        2: "model.safetensors has 5 bytes instead of 7",
        3: "shards/optimizer.pt is missing",
        6: "its checkpoint.json is of step 4",
        9: "there is no checkpoint checkpoint-9",
    }.items():
        with pytest.raises(CheckpointError, match=words):
            read_checkpoint(checkpoints / f"checkpoint-{step}")
    assert [one.name for one in whole_checkpoints(folder)] == ["checkpoint-4"]


@pytest.mark.parametrize(
    "changes",
    [
        {"step": -1},
        {"step": True},
        {"step": "5"},
        {"step": 5.0},
        {"step": 10**12},
        {"attempt": 0},
        {"resumable": "yes"},
        {"config_hash": None},
        {"settings": ["a"]},
        {"data": 3},
        {"score": "high"},
        {"score": 10**400},
        {"baseline": {"eval/reward": [1]}},
        {"versions": ["torch"]},
        {"files": ["model.safetensors"]},
        {"files": {"model.safetensors": -7}},
        {"files": {"model.safetensors": "7"}},
        {"files": {"../../run.db": 1}},
        {"files": {"/etc/passwd": 1}},
        {"files": {"": 1}},
        {"saved_at": None},
    ],
    ids=str,
)
def test_a_manifest_with_an_impossible_value_is_damage(folder: RunFolder, changes: dict[str, Any]) -> None:
    path = made(folder, 5)
    edited(path, **changes)
    with pytest.raises(CheckpointError, match=f"its {next(iter(changes))} has an impossible value"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"null",
        b'{"step": 5}',
        b'{"step": 5, "score": NaN}',
        b'{"step": 5, "saved_at": -Infinity}',
        b"\xff\xfe",
        b'{"step": ' + b"9" * 5000 + b"}",
        b"[" * 200_000,
        b'{"step": 5} {"step": 6}',
    ],
    ids=lambda content: str(content[:20]),
)
def test_what_is_no_manifest_is_damage_in_one_line(folder: RunFolder, content: bytes) -> None:
    path = made(folder, 5)
    (path / MANIFEST).write_bytes(content)
    with pytest.raises(CheckpointError, match=r"is damaged: checkpoint\.json cannot be read") as caught:
        read_checkpoint(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_link_is_not_a_file_of_the_checkpoint(folder: RunFolder, tmp_path: Path) -> None:
    path = made(folder, 5)
    (tmp_path / "elsewhere").write_bytes(b"weights")
    (path / "model.safetensors").unlink()
    (path / "model.safetensors").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="is missing"):
        read_checkpoint(path)


def test_manifests_of_other_versions_are_read(folder: RunFolder) -> None:
    path = made(folder, 5)
    edited(path, what_comes_next={"deep": [1]})
    assert read_checkpoint(path).step == 5
    document = json.loads((path / MANIFEST).read_text())
    old = {name: document[name] for name in ("step", "attempt", "resumable", "config_hash", "settings")}
    (path / MANIFEST).write_text(json.dumps(old))
    assert read_checkpoint(path).manifest.score is None
    del old["settings"]
    (path / MANIFEST).write_text(json.dumps(old))
    with pytest.raises(CheckpointError, match="it lacks settings"):
        read_checkpoint(path)


def test_which_checkpoint_is_meant(folder: RunFolder) -> None:
    made(folder, 5, score=0.9)
    made(folder, 10, score=0.4)
    made(folder, 12, "final", score=0.9)
    assert find_checkpoint(folder, "5").name == find_checkpoint(folder, "checkpoint-5").name == "checkpoint-5"
    assert find_checkpoint(folder, "newest").name == find_checkpoint(folder, "final").name == "final"
    assert find_checkpoint(folder, "best").name == "final"  # the newest of equals
    newest = newest_resumable(folder)
    assert newest is not None
    assert newest.name == "checkpoint-10"
    with pytest.raises(CheckpointError, match=r"there is no checkpoint checkpoint-7 .*; there are checkpoint-5, "):
        find_checkpoint(folder, "7")
    for odd in ("../run", "", "checkpoint-5/..", "-5", "\n"):
        with pytest.raises(CheckpointError, match="no checkpoint goes by"):
            find_checkpoint(folder, odd)


def test_a_run_without_checkpoints_says_what_would_give_some(folder: RunFolder) -> None:
    assert whole_checkpoints(folder) == []
    assert newest_resumable(folder) is None
    for asked in ("newest", "best", "3"):
        with pytest.raises(CheckpointError, match=r"; this run has no whole checkpoint; set checkpoint\.every"):
            find_checkpoint(folder, asked)


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"keep": 2, "keep_best": False}, [25, 30]),
        ({"keep": 2}, [10, 25, 30]),
        ({"keep": 1}, [10, 30]),
        ({"keep": 3, "keep_best": False, "keep_every": 15}, [15, 20, 25, 30]),
        ({"keep": 1, "keep_every": 10}, [10, 20, 30]),
        ({"keep": 10_000}, [5, 10, 15, 20, 25, 30]),
    ],
)
def test_what_is_kept(settings: dict[str, Any], kept: list[int]) -> None:
    scores = {5: 0.9, 10: 0.9, 15: None, 20: 0.1, 25: None, 30: 0.8}
    found = [
        Checkpoint(Path(f"checkpoint-{step}"), Manifest(step, 1, True, "x", {}, score=score))
        for step, score in scores.items()
    ]
    final = Checkpoint(Path("final"), Manifest(30, 1, False, "x", {}, score=1.0))
    going = [one.step for one in those_that_may_go([*found, final], CheckpointSettings(**settings))]
    assert [step for step in scores if step not in going] == kept


def test_a_checkpoint_appears_whole_and_in_the_place_of_a_damaged_one(folder: RunFolder) -> None:
    (made(folder, 5) / "model.safetensors").unlink()
    other = RunFolder(folder.path.parent / "other")
    staged = staging_of(folder.checkpoints, "checkpoint-5")
    staged.parent.mkdir()
    made(other, 5, score=0.75).rename(staged)
    assert whole_checkpoints(folder) == []
    put_in_place(staged, folder.checkpoints / "checkpoint-5")
    assert [one.manifest.score for one in whole_checkpoints(folder)] == [0.75]
    assert [entry.name for entry in folder.checkpoints.iterdir()] == ["checkpoint-5"]


def test_what_a_killed_process_left_is_cleared_away(folder: RunFolder) -> None:
    made(folder, 5)
    made(folder, 6, ".saving-checkpoint-6")
    made(folder, 4, ".going-checkpoint-4")
    clear_leftovers(folder.checkpoints)
    assert [entry.name for entry in folder.checkpoints.iterdir()] == ["checkpoint-5"]
    made(folder, 5, ".going-checkpoint-5")  # of another life of the same name
    discard(folder.checkpoints / "checkpoint-5")
    assert list(folder.checkpoints.iterdir()) == []
    clear_leftovers(folder.path / "nowhere")
