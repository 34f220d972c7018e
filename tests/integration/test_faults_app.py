"""The app, the worker and what serves the queue killed by signal 9, one by one and all at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from faults import WITHIN, require_nothing_lost
from live_runs import start, step_of, worker_of
from studio_process import ROOT, as_json, studio, wait_for

from grpo_studio import supervisor
from grpo_studio.serving import free_port

pytestmark = pytest.mark.slow


def start_app(home: Path) -> psutil.Process:
    environment = {
        **os.environ, "GRPO_STUDIO_HOME": str(home), "GRPO_STUDIO_CACHE": str(home / "cache"),
        "GRPO_STUDIO_PORT": str(free_port()),
    }  # fmt: skip
    with (home / "app.log").open("ab") as log:
        app = psutil.Popen([sys.executable, str(ROOT / "app.py")], cwd=home, env=environment, stdout=log, stderr=log)
    wait_for(lambda: "http://" in (home / "app.log").read_text(), what="the app")
    return app


def kill(*processes: psutil.Process) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    for process in processes:
        with suppress(psutil.TimeoutExpired, subprocess.TimeoutExpired):
            process.wait(10)


def test_the_app_killed_changes_nothing_for_the_run(tmp_path: Path, tiny_model: Path) -> None:
    app = start_app(tmp_path)
    folder = start(tiny_model, tmp_path)
    wait_for(lambda: step_of(folder) >= 1, what="a step")
    kill(app)
    before = step_of(folder)
    wait_for(lambda: step_of(folder) >= before + 2, what="steps after the app's end")
    again = start_app(tmp_path)
    [row] = as_json(studio("runs", "--json", home=tmp_path))
    assert (row["run"], row["state"]) == (folder.run_id, "running")
    kill(again)
    assert as_json(studio("stop", folder.run_id, "--json", home=tmp_path))["state"] == "stopped"
    require_nothing_lost(folder, before + 2)


@pytest.mark.parametrize("server_too", [False, True], ids=["app and worker", "app, worker and dispatcher"])
def test_all_killed_at_once_leave_a_true_state_and_no_process(
    tmp_path: Path, tiny_model: Path, server_too: bool
) -> None:
    app = start_app(tmp_path)
    folder = start(tiny_model, tmp_path)
    wait_for(lambda: step_of(folder) >= 2, what="step 2")
    worker = psutil.Process(worker_of(folder).pid)
    server = worker.parent()
    assert server is not None
    kill(app, *([server] if server_too else []), worker)
    state = supervisor.state_of(folder)
    assert state.state == "killed"
    assert "; no checkpoint was saved: start the run again" in state.reason
    if not server_too:
        wait_for(lambda: "signal 9" in supervisor.state_of(folder).reason, limit=WITHIN, what="the signal")
    require_nothing_lost(folder, 2)
    again = start_app(tmp_path)
    [row] = as_json(studio("runs", "--json", home=tmp_path))
    assert row["state"] == "killed"
    kill(again)
