"""Start, stop, kill, find again: real workers, real signals."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from live_runs import family, start, step_of, worker_of
from studio_process import TINY_RUN, as_json, studio, wait_for

from grpo_studio import dispatcher, supervisor
from grpo_studio.config import RunConfig
from grpo_studio.job_queue import JobQueue
from grpo_studio.process_identity import is_alive
from grpo_studio.settings import Settings
from grpo_studio.store.folder import create_run
from grpo_studio.store.reader import RunReader


def test_a_run_killed_by_signal_9_reads_as_killed_and_its_rows_stay(tmp_path: Path, tiny_model: Path) -> None:
    folder = start(tiny_model, tmp_path)
    wait_for(lambda: step_of(folder) >= 2, what="step 2")
    process = worker_of(folder)
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: supervisor.state_of(folder).state == "killed", limit=10, what="the state killed")
    wait_for(lambda: "signal 9" in supervisor.state_of(folder).reason, limit=10, what="the signal in the reason")
    shown = as_json(studio("show", folder.run_id, "--json", home=tmp_path))
    assert shown["state"] == "killed"
    assert shown["step"] >= 2
    assert f"last step {shown['step']}" in shown["reason"]
    assert shown["completions"] == shown["groups"] * 4
    assert shown["groups"] >= shown["step"] * 2
    wait_for(lambda: family(process.session) == [], limit=10, what="the end of the worker's children")


def test_stop_finishes_the_step_saves_and_leaves_no_process(tmp_path: Path, tiny_model: Path) -> None:
    folder = start(tiny_model, tmp_path)
    wait_for(lambda: step_of(folder) >= 1, what="a step")
    session = worker_of(folder).session
    stopped = as_json(studio("stop", folder.run_id, "--json", home=tmp_path))
    assert stopped["state"] == "stopped"
    assert (folder.checkpoints / f"checkpoint-{stopped['step']}" / "model.safetensors").is_file()
    with RunReader(folder.database) as reader:
        assert [event.kind for event in reader.events()][-1] == "run_stopped"
    assert family(session) == []
    again = as_json(studio("stop", folder.run_id, "--json", home=tmp_path))
    assert again == stopped


def test_a_worker_deaf_to_sigterm_is_killed_with_its_group_after_the_grace_period(
    tmp_path: Path, tiny_model: Path
) -> None:
    folder = start(tiny_model, tmp_path, GRPO_STUDIO_GRACE="1")
    process = worker_of(folder)
    wait_for(lambda: step_of(folder) >= 1, what="a step")
    os.kill(process.pid, signal.SIGSTOP)
    supervisor_env = {"GRPO_STUDIO_GRACE": "1"}
    stopped = as_json(studio("stop", folder.run_id, "--json", home=tmp_path, **supervisor_env))
    assert stopped["state"] == "killed"
    assert "signal 9" in stopped["reason"]
    assert family(process.session) == []


def test_a_waiting_run_is_queued_and_can_be_stopped_before_it_begins(tmp_path: Path, tiny_model: Path) -> None:
    first = start(tiny_model, tmp_path)
    second = start(tiny_model, tmp_path)
    wait_for(lambda: step_of(first) >= 1, what="a step of the first run")
    assert supervisor.state_of(second).state == "queued"
    assert as_json(studio("stop", second.run_id, "--json", home=tmp_path))["state"] == "stopped"
    assert supervisor.state_of(first).state == "running"
    assert as_json(studio("stop", first.run_id, "--json", home=tmp_path))["state"] == "stopped"
    assert second.process() is None


def test_a_dispatcher_that_died_is_replaced_and_the_run_goes_on(tmp_path: Path, tiny_model: Path) -> None:
    folder = start(tiny_model, tmp_path)
    wait_for(lambda: step_of(folder) >= 1, what="a step")
    process = worker_of(folder)
    server = psutil.Process(process.pid).parent()
    assert server is not None
    assert "grpo_studio.dispatcher" in server.cmdline()
    server.kill()
    step = step_of(folder)
    wait_for(lambda: step_of(folder) > step, what="a step after the dispatcher's death")
    assert supervisor.state_of(folder).state == "running"
    assert as_json(studio("stop", folder.run_id, "--json", home=tmp_path))["state"] == "stopped"


def test_a_stop_while_the_worker_starts_is_kept(tmp_path: Path, tiny_model: Path) -> None:
    for pause in (0.0, 0.6, 1.5):
        folder = start(tiny_model, tmp_path)
        time.sleep(pause)
        stopped = as_json(studio("stop", folder.run_id, "--json", home=tmp_path))
        assert (stopped["state"], stopped["step"]) == ("stopped", 0), (pause, stopped["reason"])


def test_a_run_whose_worker_was_never_started_has_failed(settings: Settings) -> None:
    """What served the queue died after it took the job and before it started a worker."""
    folder = create_run(settings.runs_dir, RunConfig(), "orphan")
    queue = JobQueue(settings.queue_path)
    queue.add(folder.path)
    assert queue.take(folder.path)
    dispatcher.ensure_running(settings)
    assert supervisor.wait_until_ended(folder, settings).state == "failed"
    assert "never started" in supervisor.state_of(folder).reason
    assert queue.jobs() == []


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


def test_tokens_reach_the_worker_by_environment_only(tmp_path: Path, tiny_model: Path) -> None:
    secret = "hf_notarealtokenjustfortests"
    folder = start(tiny_model, tmp_path, HF_TOKEN=secret)
    process = worker_of(folder)
    wait_for(lambda: step_of(folder) >= 1, what="a step")
    environments = {p.pid: p.environ().get("HF_TOKEN") for p in family(process.session)}
    assert environments.pop(process.pid) == secret
    assert all(secret not in " ".join(p.cmdline()) for p in family(process.session))
    studio("stop", folder.run_id, home=tmp_path)
    for path in folder.path.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_a_reused_pid_is_not_taken_for_the_worker(tmp_path: Path, tiny_model: Path) -> None:
    folder = start(tiny_model, tmp_path)
    process = worker_of(folder)
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: supervisor.state_of(folder).ended, what="the end")
    record = json.loads(folder.process_path.read_text()) | {"pid": os.getpid(), "exit_code": None, "signal": None}
    folder.process_path.write_text(json.dumps(record))
    assert not is_alive(os.getpid(), record["started"])
    assert supervisor.state_of(folder).state == "killed"


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "a" * 300, "", "..", "\x00", "run\nname"])
def test_run_names_cannot_leave_the_runs_folder(tmp_path: Path, tiny_model: Path, name: str) -> None:
    folder = create_run(tmp_path / "runs", RunConfig(), name)
    assert folder.path.parent == tmp_path / "runs"
    assert folder.path.is_dir()
