"""The same with real processes: a worker killed by signal 9 and resumed by the command line; two processes that go on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from live_runs import ended, worker_of
from resumed_here import Runs, assert_same, begin
from studio_process import ROOT, as_json, studio, tiny_train, wait_for

from grpo_studio.checkpoints import read_checkpoint
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader

TWELVE = ("--set", "algorithm.steps=12", "--set", "checkpoint.every=5", "--set", "algorithm.learning_rate=0.01")
DONE = ("run_finished", "all 12 steps done")


def trained(model: Path, home: Path, *more: str) -> RunFolder:
    result = tiny_train(model, home, *TWELVE, *more)
    assert result.returncode == 0, result.stderr
    return RunFolder(home / "runs" / as_json(result)["run"])


def has_step(folder: RunFolder, step: int) -> bool:
    with RunReader(folder.database) as reader:
        return reader.last_step() >= step


@pytest.mark.slow
def test_killed_by_signal_nine_and_resumed_by_the_command_line(tmp_path: Path, tiny_model: Path) -> None:
    alone = trained(tiny_model, tmp_path / "alone", "--wait")
    home = tmp_path / "killed"
    folder = trained(tiny_model, home)
    wait_for(lambda: has_step(folder, 7), limit=240, what="step 7")
    os.killpg(worker_of(folder).session, signal.SIGKILL)
    wait_for(lambda: as_json(studio("show", "latest", "--json", home=home))["state"] == "killed", what="the death")
    result = studio("resume", "latest", "--json", home=home)
    assert result.returncode == 0, result.stderr
    wait_for(lambda: bool(ended(folder)), limit=240, what="the end")
    assert ended(folder) == [DONE]
    assert_same(folder, alone)


def work(folder: RunFolder) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TORCHDYNAMO_DISABLE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "grpo_studio.worker", str(folder.path)]
    with folder.log.open("ab") as log:
        subprocess.run(
            command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=500,
            check=True, start_new_session=True,
        )  # fmt: skip


@pytest.mark.slow
def test_two_processes_go_on_each_with_its_own_share_and_randomness(
    settings: Settings, tiny_model: Path, tmp_path: Path
) -> None:
    """From the first of two uses of a batch; what the first attempt did after the checkpoint is what it is held to."""
    two = ("scale.processes=2", "scale.strategy=ddp", "algorithm.num_iterations=2", "algorithm.steps=8")
    alone = Runs(tiny_model, settings).create(*two)
    work(alone)
    checkpoint = read_checkpoint(alone.checkpoints / "checkpoint-5")
    assert {"rng_state_0.pth", "rng_state_1.pth", "process_state_0.pt", "process_state_1.pt"} <= {
        *checkpoint.manifest.files
    }
    folder = RunFolder(Path(shutil.copytree(alone.path, tmp_path / "copy" / alone.run_id)))
    shutil.rmtree(folder.checkpoints / "final")
    begin(folder, 5)
    work(folder)
    assert ended(folder)[-1] == ("run_finished", "all 8 steps done")
    assert_same(folder, alone)
