"""Several processes train one run on the CPU: real workers, the tiny model, gloo."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from live_runs import GONE_WITHIN, ended, events_of, family, ranks_of, start, step_of, worker_of
from studio_process import ROOT, as_json, studio, tiny_train, wait_for

from grpo_studio import supervisor
from grpo_studio.config import RunConfig
from grpo_studio.store.folder import RunFolder, create_run
from grpo_studio.store.reader import RunReader

TWO_PROCESSES = ("--set", "scale.processes=2", "--set", "scale.strategy=ddp")
VARIETY = """from grpo_studio.verifiers import verifier

@verifier(examples=[("aab", {}, 0.5)])
def variety(completion: str) -> float:
    return len(set(completion)) / 4
"""
"""A reward that tells the random answers of the tiny model apart, so that there is something to learn."""


def add_variety(home: Path) -> None:
    (home / "rewards").mkdir()
    (home / "rewards" / "variety.py").write_text(VARIETY)


@pytest.mark.slow
def test_ranks_die_with_a_killed_launcher(tmp_path: Path, tiny_model: Path) -> None:
    folder = start(tiny_model, tmp_path, *TWO_PROCESSES)
    session = worker_of(folder).session
    wait_for(lambda: len(ranks_of(session)) == 2, what="the ranks")
    os.kill(session, signal.SIGKILL)
    wait_for(lambda: family(session) == [], limit=5, what="the end of the ranks")
    wait_for(lambda: supervisor.state_of(folder).state == "killed", limit=10, what="the state killed")


def test_two_processes_train_and_record_every_group_once(tmp_path: Path, tiny_model: Path) -> None:
    add_variety(tmp_path)
    shown = as_json(
        tiny_train(tiny_model, tmp_path, *TWO_PROCESSES, "--set", "rewards=[{verifier: variety}]", "--wait")
    )
    assert shown["state"] == "finished", shown["reason"]
    assert shown["step"] == 3
    folder = RunFolder(tmp_path / "runs" / shown["run"])
    with RunReader(folder.database) as reader:
        groups = reader.rows("SELECT step, count(*) FROM prompt_group WHERE split = 'train' GROUP BY step")
        completions = reader.rows(
            "SELECT count(*) FROM completion JOIN prompt_group ON group_id = prompt_group.id WHERE split = 'train'"
        )
    assert groups == [(1, 2), (2, 2), (3, 2)]
    assert completions == [(3 * 2 * 4,)]
    [setup] = [event.data for event in events_of(folder) if event.kind == "setup"]
    assert setup is not None
    assert (setup["world_size"], setup["wrapper"]) == (2, "DistributedDataParallel")
    assert (folder.checkpoints / "final" / "model.safetensors").is_file()


@pytest.mark.slow
def test_a_rank_killed_while_it_trains_ends_the_run(tmp_path: Path, tiny_model: Path) -> None:
    folder = start(tiny_model, tmp_path, *TWO_PROCESSES)
    wait_for(lambda: step_of(folder) >= 2, what="step 2")
    session = worker_of(folder).session
    ranks_of(session)["1"].kill()
    begun = time.monotonic()
    wait_for(lambda: supervisor.state_of(folder).ended and family(session) == [], limit=GONE_WITHIN, what="the end")
    print(f"all gone {time.monotonic() - begun:.1f} s after the death of rank 1")
    state = supervisor.state_of(folder)
    assert state.state == "failed"
    assert state.reason.startswith("rank 1 was killed by signal 9 (SIGKILL"), state.reason
    assert len(ended(folder)) == 1


@pytest.mark.slow
def test_a_stop_ends_all_ranks_after_one_step_with_a_checkpoint(tmp_path: Path, tiny_model: Path) -> None:
    folder = start(tiny_model, tmp_path, *TWO_PROCESSES)
    wait_for(lambda: step_of(folder) >= 1, what="a step")
    session = worker_of(folder).session
    stopped = as_json(studio("stop", folder.run_id, "--json", home=tmp_path))
    assert stopped["state"] == "stopped", stopped["reason"]
    assert stopped["step"] >= 1
    assert (folder.checkpoints / f"checkpoint-{stopped['step']}" / "model.safetensors").is_file()
    assert len(ended(folder)) == 1
    assert family(session) == []


def work(home: Path, **settings: Any) -> tuple[RunFolder, subprocess.Popen[bytes]]:
    """A run and its worker, started with no queue between."""
    folder = create_run(home / "runs", RunConfig.model_validate(settings))
    with folder.log.open("ab") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "grpo_studio.worker", str(folder.path)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "GRPO_STUDIO_HOME": str(home), "TORCHDYNAMO_DISABLE": "1"},
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    return folder, worker


def test_a_setting_that_the_ranks_refuse_is_told_once(tmp_path: Path, tiny_model: Path) -> None:
    two = {"processes": 2, "strategy": "ddp"}
    folder, worker = work(tmp_path, model={"id": str(tiny_model / "gone")}, scale=two)
    assert worker.wait(120) == 1
    [(kind, message)] = ended(folder)
    assert kind == "run_failed"
    assert "rank " in message
    assert "gone" in message


@pytest.mark.slow
def test_fsdp_on_a_cpu_fails_instead_of_training_under_ddp(tmp_path: Path, tiny_model: Path) -> None:
    """The check refuses it; a run that comes past the check has to look at what it got."""
    settings = {
        "model": {"id": str(tiny_model)},
        "dataset": {"held_out": 0},
        "scale": {"processes": 2, "strategy": "fsdp"},
    }
    folder, worker = work(tmp_path, **settings)
    assert worker.wait(120) == 1
    [(kind, message)] = ended(folder)
    assert kind == "run_failed"
    assert "fsdp was asked for, and the model is wrapped in DistributedDataParallel" in message


@pytest.mark.slow
def test_two_machines_train_together_and_each_has_its_own_run(tmp_path: Path, tiny_model: Path) -> None:
    add_variety(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "model": {"id": str(tiny_model)},
        "dataset": {"held_out": 0},
        "rewards": [{"verifier": "variety"}],
        "algorithm": {"steps": 2, "prompts_per_step": 2, "group_size": 4, "max_completion_length": 12},
    }
    meet = {"machines": 2, "strategy": "ddp", "main_process_ip": "127.0.0.1", "main_process_port": port}
    machines = [work(tmp_path, **settings, scale={**meet, "machine_rank": rank}) for rank in (0, 1)]
    assert [worker.wait(180) for _, worker in machines] == [0, 0]
    for folder, worker in machines:
        assert ended(folder) == [("run_finished", "all 2 steps done")]
        assert supervisor.state_of(folder).state == "finished"
        assert family(worker.pid) == []
    assert (machines[0][0].checkpoints / "final" / "model.safetensors").is_file()
    assert not (machines[1][0].checkpoints / "final").exists()


def replayed_run(home: Path, model: Path, processes: int) -> RunFolder:
    """Three steps of replayed completions, by one process or several."""
    config = RunConfig.model_validate(
        {
            "model": {"id": str(model)},
            "dataset": {"held_out": 5},
            "rewards": [{"verifier": "regex_match", "params": {"pattern": "[a-m]", "match": "search"}}],
            "algorithm": {
                "steps": 3, "prompts_per_step": 4, "group_size": 4, "learning_rate": 0.1, "beta": 0.04,
                "max_completion_length": 12, "optimizer": "sgd",  # Adam would make much of a gradient's last digits
            },
            "memory": {"micro_batch": 4},
            "scale": {"processes": processes, "strategy": "ddp" if processes > 1 else "none"},
        }
    )  # fmt: skip
    folder = create_run(home / "runs", config, f"replay-{processes}")
    paths = {
        "GRPO_STUDIO_HOME": str(home),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}",
        "TORCHDYNAMO_DISABLE": "1",
    }
    command = [sys.executable, str(ROOT / "tests" / "replay_worker.py"), str(folder.path)]
    more = ["--launch"] if processes > 1 else []
    subprocess.run([*command, *more], env={**os.environ, **paths}, check=True, timeout=120, start_new_session=True)
    return folder


@pytest.mark.slow
def test_two_processes_learn_the_same_from_the_same_completions(tmp_path: Path, tiny_model: Path) -> None:
    import torch
    from safetensors.torch import load_file

    one, two = (replayed_run(tmp_path, tiny_model, processes) for processes in (1, 2))

    def groups(folder: RunFolder) -> list[Any]:
        with RunReader(folder.database) as reader:
            return reader.rows(
                "SELECT g.step, g.split, g.prompt, c.idx, c.text, c.reward, round(c.advantage, 5) FROM completion c "
                "JOIN prompt_group g ON g.id = c.group_id ORDER BY g.id, c.idx"
            )

    assert groups(one) == groups(two)
    assert len([row for row in groups(two) if row[1] == "train"]) == 3 * 4 * 4
    with RunReader(one.database) as first, RunReader(two.database) as second:
        of_one, of_two = first.last_metrics(), second.last_metrics()
    for name in (
        "reward/mean",
        "optim/loss",
        "optim/grad_norm",
        "policy/kl",
        "policy/entropy",
        "policy/tokens",
        "eval/reward",
    ):
        assert of_two[name] == pytest.approx(of_one[name], rel=1e-4, abs=1e-6), name
    weights = [load_file(folder.checkpoints / "final" / "model.safetensors") for folder in (one, two)]
    for name, tensor in weights[0].items():
        torch.testing.assert_close(tensor, weights[1][name], rtol=0, atol=2e-5)
