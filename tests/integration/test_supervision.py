"""Start, stop, kill, find again: real workers, real signals."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from live_runs import events_of, family, start, step_of, worker_of
from studio_process import TINY_RUN, as_json, studio, wait_for

from grpo_studio import supervisor
from grpo_studio.config import RunConfig
from grpo_studio.process_identity import is_alive
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, create_run
from grpo_studio.store.reader import RunReader, current

SECRET = "hf_notarealtokenjustfortests"


def tiny_config(model: Path) -> RunConfig:
    """A run of the tiny model that goes on until it is ended."""
    return RunConfig.model_validate(
        {
            "model": {"id": str(model)},
            "dataset": {"held_out": 0},
            "rewards": [{"verifier": "regex_match", "params": {"pattern": "[a-m]", "match": "search"}}],
            "algorithm": {"steps": 100_000, "prompts_per_step": 2, "group_size": 4, "max_completion_length": 8},
        }
    )


@dataclass(frozen=True)
class Killed:
    """A run of 12 steps whose worker was killed by signal 9 after step 7, as it was then.

    Args:
        folder: the run itself, which a test may resume; `then` is a copy that nobody touches.
        told: what `show` printed.
        family: command lines and tokens of the worker and its children while they lived.
        left: those of them that were still there ten seconds later.
    """

    folder: RunFolder
    then: RunFolder
    home: Path
    told: dict[str, Any]
    worker: int
    family: dict[int, tuple[str, str | None]]
    left: list[psutil.Process]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Killed:
    home = tmp_path_factory.mktemp("killed")
    folder = start(tiny_model, home, "--set", "algorithm.steps=12", "--set", "checkpoint.every=3", HF_TOKEN=SECRET)
    wait_for(lambda: step_of(folder) >= 7, what="step 7")
    process = worker_of(folder)
    os.kill(process.pid, signal.SIGSTOP)
    members = {
        member.pid: (" ".join(member.cmdline()), member.environ().get("HF_TOKEN")) for member in family(process.session)
    }
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: supervisor.state_of(folder).state == "killed", limit=10, what="the state killed")
    wait_for(lambda: "signal 9" in supervisor.state_of(folder).reason, limit=10, what="the signal in the reason")
    wait_for(lambda: family(process.session) == [], limit=10, what="the end of the worker's children")
    then = RunFolder(home / "then" / folder.run_id)
    shutil.copytree(folder.path, then.path)
    told = as_json(studio("show", folder.run_id, "--json", home=home))
    return Killed(folder, then, home, told, process.pid, members, family(process.session))


def test_a_run_killed_by_signal_9_reads_as_killed_and_its_rows_stay(killed: Killed) -> None:
    shown = killed.told
    assert shown["state"] == "killed"
    assert shown["step"] >= 7
    assert f"last step {shown['step']}" in shown["reason"]
    assert shown["completions"] == shown["groups"] * 4
    assert shown["groups"] >= shown["step"] * 2
    assert killed.left == []


def test_tokens_reach_the_worker_by_environment_only(killed: Killed) -> None:
    assert killed.family[killed.worker][1] == SECRET
    assert all(token is None for pid, (_, token) in killed.family.items() if pid != killed.worker)
    assert all(SECRET not in command for command, _ in killed.family.values())
    for path in killed.then.path.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


def test_a_reused_pid_is_not_taken_for_the_worker(killed: Killed) -> None:
    record = json.loads(killed.then.process_path.read_text()) | {"pid": os.getpid(), "exit_code": None, "signal": None}
    killed.then.process_path.write_text(json.dumps(record))
    assert not is_alive(os.getpid(), record["started"])
    assert supervisor.state_of(killed.then).state == "killed"


def test_a_killed_run_that_is_resumed_by_command_finishes_with_each_step_once(killed: Killed) -> None:
    folder, steps = killed.folder, killed.told["step"]
    resumed = as_json(
        studio("resume", folder.run_id, "--set", "checkpoint.keep=9", "--wait", "--json", home=killed.home)
    )
    assert (resumed["state"], resumed["step"], resumed["attempt"]) == ("finished", 12, 2), resumed["reason"]
    listed = as_json(studio("checkpoints", folder.run_id, "--json", home=killed.home))["checkpoints"]
    began = next(event for event in events_of(folder) if event.kind == "attempt_began")
    assert began.message.startswith("goes on after step 6 from checkpoint-6")
    assert [one["step"] for one in listed if one["attempt"] == 2 and one["resumable"]] == [9, 12]
    with RunReader(folder.database) as reader:
        rows = "SELECT step FROM metric WHERE name = 'optim/loss'"
        everything = [step for (step,) in reader.rows(f"{rows} ORDER BY id")]
        kept = [step for (step,) in reader.rows(f"{rows} AND {current(reader)} ORDER BY step")]
    assert kept == list(range(1, 13))
    assert everything == [*range(1, steps + 1), *range(7, 13)]
    again = studio("resume", folder.run_id, home=killed.home)
    assert again.returncode == 1
    assert "has finished: 12 steps are done; " in again.stderr


def test_one_run_through_the_death_of_its_dispatcher_to_its_stop_while_another_waits(
    settings: Settings, tiny_model: Path
) -> None:
    config = tiny_config(tiny_model)
    first, second = (supervisor.submit(config, settings, name) for name in ("first", "second"))
    wait_for(lambda: step_of(first) >= 1, what="a step")
    process = worker_of(first)
    server = psutil.Process(process.pid).parent()
    assert server is not None
    assert "grpo_studio.dispatcher" in server.cmdline()
    server.kill()
    step = step_of(first)
    wait_for(lambda: step_of(first) > step, what="a step after the dispatcher's death")
    assert supervisor.state_of(first).state == "running"

    assert supervisor.summary(second, settings)["place"] == 1
    cancelled = as_json(studio("cancel", second.run_id, "--json", home=settings.home))
    assert (cancelled["state"], cancelled["place"]) == ("stopped", None)
    assert second.process() is None

    stopped = as_json(studio("stop", first.run_id, "--json", home=settings.home))
    assert stopped["state"] == "stopped"
    assert (first.checkpoints / f"checkpoint-{stopped['step']}" / "model.safetensors").is_file()
    assert [event.kind for event in events_of(first)][-1] == "run_stopped"
    assert family(process.session) == []
    assert as_json(studio("stop", first.run_id, "--json", home=settings.home)) == stopped


def test_a_worker_deaf_to_sigterm_is_killed_with_its_group_after_the_grace_period(
    settings: Settings, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRPO_STUDIO_GRACE", "1")
    folder = supervisor.submit(tiny_config(tiny_model), settings)
    process = worker_of(folder)
    wait_for(lambda: step_of(folder) >= 1, what="a step")
    os.kill(process.pid, signal.SIGSTOP)
    stopped = as_json(studio("stop", folder.run_id, "--json", home=settings.home))
    assert stopped["state"] == "killed"
    assert "signal 9" in stopped["reason"]
    assert family(process.session) == []


def test_a_stop_while_the_worker_starts_is_kept(settings: Settings, tiny_model: Path) -> None:
    for pause in (0.0, 0.6, 1.5):
        folder = supervisor.submit(tiny_config(tiny_model), settings)
        time.sleep(pause)
        supervisor.stop(folder, settings)
        state = supervisor.wait_until_ended(folder, settings)
        assert (state.state, step_of(folder)) == ("stopped", 0), (pause, state.reason)


@pytest.mark.slow
def test_local_paths_mean_the_folder_that_they_were_typed_in(tmp_path: Path, tiny_model: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "model").symlink_to(tiny_model)
    rows = [json.dumps({"prompt": f"{number} + 1", "answer": str(number + 1)}) for number in range(20)]
    (place / "rows.jsonl").write_text("\n".join(rows))
    local = ("--set", "model.id=model", "--set", "dataset.source=rows.jsonl", "--set", "dataset.held_out=2")
    result = studio("train", "--preset", "quickstart", *TINY_RUN, *local, "--wait", "--json", home=tmp_path, cwd=place)
    assert as_json(result)["state"] == "finished", result.stdout


def test_a_damaged_run_hides_no_other(tmp_path: Path) -> None:
    whole = create_run(tmp_path / "runs", RunConfig(), "whole")
    for name, damage in (("config", "config.yaml"), ("process", "process.json")):
        (create_run(tmp_path / "runs", RunConfig(), name).path / damage).write_text("algorithm: {steps: many}")
    rows = {row["run"]: row for row in json.loads(studio("runs", "--json", home=tmp_path).stdout)}
    assert rows[whole.run_id]["state"] == "queued"
    assert sum("error" in row for row in rows.values()) == 2
    assert studio("runs", home=tmp_path).stdout.count("unreadable") == 2


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "a" * 300, "", "..", "\x00", "run\nname"])
def test_run_names_cannot_leave_the_runs_folder(tmp_path: Path, tiny_model: Path, name: str) -> None:
    folder = create_run(tmp_path / "runs", RunConfig(), name)
    assert folder.path.parent == tmp_path / "runs"
    assert folder.path.is_dir()
