"""The same with real processes: a worker killed by signal 9 and resumed by the command line, alone and as one of two."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from live_runs import worker_of
from resumed_here import assert_same
from studio_process import as_json, studio, tiny_train, wait_for

from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader

TWELVE = ("--set", "algorithm.steps=12", "--set", "checkpoint.every=5", "--set", "algorithm.learning_rate=0.01")


def trained(model: Path, home: Path, *more: str) -> RunFolder:
    result = tiny_train(model, home, *TWELVE, *more, OMP_NUM_THREADS="1")
    assert result.returncode == 0, result.stderr
    return RunFolder(home / "runs" / as_json(result)["run"])


def has_step(folder: RunFolder, step: int) -> bool:
    with RunReader(folder.database) as reader:
        return reader.last_step() >= step


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [(), ("--set", "scale.processes=2", "--set", "scale.strategy=ddp")], ids=["alone", "two processes"]
)
def test_killed_by_signal_nine_and_resumed(tmp_path: Path, tiny_model: Path, more: tuple[str, ...]) -> None:
    alone = trained(tiny_model, tmp_path / "alone", *more, "--wait")
    home = tmp_path / "killed"
    folder = trained(tiny_model, home, *more)
    wait_for(lambda: has_step(folder, 7), limit=240, what="step 7")
    os.killpg(worker_of(folder).session, signal.SIGKILL)
    wait_for(lambda: as_json(studio("show", "latest", "--json", home=home))["state"] == "killed", what="the death")
    result = studio("resume", "latest", "--json", home=home, OMP_NUM_THREADS="1")
    assert result.returncode == 0, result.stderr
    wait_for(lambda: as_json(studio("show", "latest", "--json", home=home))["state"] == "finished", limit=240)
    assert json.loads((folder.checkpoints / "checkpoint-10" / "checkpoint.json").read_text())["attempt"] in (1, 2)
    assert_same(folder, alone)
