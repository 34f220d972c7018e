"""Commands that the pages run as child processes: their answer, their errors, ended whole, and nothing secret shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from child_process import ends
from sample_run import SampleRun

from grpo_studio.errors import UsageError
from grpo_studio.exporting.redaction import Redaction
from grpo_studio.settings import PACKAGE_DIR, Settings
from grpo_studio.ui.command_jobs import CommandJobs, on_run

TOKEN = "hf_quite_secret_0123456789"


@pytest.fixture
def jobs(settings: Settings) -> CommandJobs:
    return CommandJobs(settings)


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A file that a command reads for ever: nobody writes into this pipe."""
    path = tmp_path / "cases.jsonl"
    os.mkfifo(path)
    return path


def _ended(jobs: CommandJobs, key: str) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while (answer := jobs.progress(key))["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return answer


def _children() -> list[psutil.Process]:
    found = psutil.Process().children(recursive=True)
    return [one for one in found if "grpo_studio.ui.command_child" in one.cmdline()]


def test_a_command_works_on_the_folders_of_the_app_and_its_document_is_the_result(
    settings: Settings, jobs: CommandJobs
) -> None:
    run = SampleRun(settings.home)
    run.begin()
    jobs.begin("key-0001", ["runs"])
    jobs.begin("key-0002", on_run("show", run.folder.run_id))
    assert [row["run"] for row in _ended(jobs, "key-0001")["result"]["rows"]] == [run.folder.run_id]
    shown = _ended(jobs, "key-0002")
    assert (shown["state"], shown["result"]["state"]) == ("done", "running")
    assert jobs.progress("key-0003") == {"unknown": True}


@pytest.mark.parametrize("run_id", ["--help", "-h", "--runs-dir=/", "$(touch hacked)", "no\nsuch; run"])
def test_a_hostile_id_is_an_unknown_run_in_one_line(settings: Settings, jobs: CommandJobs, run_id: str) -> None:
    SampleRun(settings.home)
    jobs.begin("key-0001", on_run("show", run_id))
    answer = _ended(jobs, "key-0001")
    assert answer["state"] == "failed"
    assert answer["message"].startswith("no run '")
    assert "\n" not in answer["message"]
    assert not Path("hacked").exists()


def test_no_shell_and_no_other_program_is_reached(jobs: CommandJobs) -> None:
    with pytest.raises(UsageError, match="is no command"):
        jobs.begin("key-0001", ["--help"])
    with pytest.raises(UsageError, match="null character"):
        jobs.begin("key-0001", ["show", "--", "a\0b"])


def test_a_cancelled_command_is_gone(jobs: CommandJobs, endless: Path) -> None:
    jobs.begin("key-0001", ["score", f"--cases={endless}"])
    deadline = time.monotonic() + 30
    while not (children := _children()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    jobs.cancel("key-0001")
    assert _ended(jobs, "key-0001")["state"] == "cancelled"
    assert all(ends(child.pid) for child in children)


def test_a_command_ends_with_the_app_even_by_signal_9(settings: Settings, endless: Path) -> None:
    """The app is a program of its own here, that begins a command and waits."""
    app = (
        "import sys, time\n"
        "from grpo_studio.settings import Settings\n"
        "from grpo_studio.ui.command_jobs import CommandJobs\n"
        "jobs = CommandJobs(Settings.from_env())\n"
        "jobs.begin('key-0001', ['score', '--cases=' + sys.argv[1]])\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", app, str(endless)], cwd=PACKAGE_DIR.parent)
    try:
        deadline = time.monotonic() + 30
        while not (children := psutil.Process(process.pid).children(recursive=True)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        while not any("score" in child.cmdline() for child in children):
            time.sleep(0.05)
        _opened(children[0])
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert all(ends(child.pid) for child in children)


def _opened(child: psutil.Process) -> None:
    """Wait until it runs this program's code: the thread that watches the app is there."""
    deadline = time.monotonic() + 30
    while child.num_threads() < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_tokens_of_the_environment_are_not_shown(jobs: CommandJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    jobs.begin("key-0001", ["score", f"--cases=/nowhere/{TOKEN}"])
    answer = _ended(jobs, "key-0001")
    assert answer["state"] == "failed"
    assert "/nowhere/***" in answer["message"]
    assert TOKEN not in json.dumps(answer)


def test_what_counts_as_a_secret() -> None:
    environment = {
        "HF_TOKEN": "abcdef1", "WANDB_API_KEY": "abcdef12", "AWS_SECRET_ACCESS_KEY": "s3cr3t-value", "EMPTY_TOKEN": "",
        "SHORT_TOKEN": "1", "HOME": "/home/somebody",
    }  # fmt: skip
    text = "abcdef1 abcdef12 s3cr3t-value 1 /home/somebody"
    assert Redaction.of_environment(environment).text(text) == "*** *** *** 1 /home/somebody"
