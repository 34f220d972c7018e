"""What serves the queue: order, devices, several home folders on one runs folder, runs that come to nothing.

The workers are real ones. They find no model, so they end soon; where they have to live they are frozen as they begin.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest
from studio_process import ROOT, wait_for

from grpo_studio import supervisor
from grpo_studio.config import RunConfig
from grpo_studio.devices import VISIBLE
from grpo_studio.exit_codes import ANOTHER_WORKER
from grpo_studio.job_queue import JobQueue
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, create_run
from grpo_studio.store.reader import RunReader

CARDS = "0, GPU-0-abc, NVIDIA H200, 81920, 0\\n1, GPU-1-abc, NVIDIA H200, 81920, 0"


@dataclass
class Home:
    """A home folder whose queue is served by processes that this test starts."""

    settings: Settings
    path_first: str = ""
    serving: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def queue(self) -> JobQueue:
        return JobQueue(self.settings.queue_path)

    def add(self, processes: int = 1) -> RunFolder:
        scale = {"processes": processes, "strategy": "ddp" if processes > 1 else "none"}
        config = RunConfig.model_validate({"model": {"id": "/no/such/model"}, "scale": scale})
        folder = create_run(self.settings.runs_dir, config, "queued")
        self.queue.add(folder.path)
        return folder

    def serve(self) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "GRPO_STUDIO_HOME": str(self.settings.home),
            "PYTHONPATH": str(ROOT),
            "PATH": f"{self.path_first}{os.pathsep}{os.environ['PATH']}" if self.path_first else os.environ["PATH"],
        }
        environment.pop(VISIBLE, None)
        log = (self.settings.home / "served.log").open("ab")
        with log:
            served = subprocess.Popen(
                [sys.executable, "-m", "grpo_studio.dispatcher"],
                cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self.serving.append(served)
        return served

    def log(self) -> str:
        return (self.settings.home / "served.log").read_text()


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Callable[[str], Home]]:
    made: list[Home] = []

    def make(name: str) -> Home:
        base = Settings.from_env({"GRPO_STUDIO_HOME": str(tmp_path / name)})
        home = Home(replace(base, runs_dir=tmp_path / "runs"))
        home.settings.require_writable()
        made.append(home)
        return home

    yield make
    for home in made:
        for served in home.serving:
            served.kill()
            served.wait()
        for job in home.queue.jobs():
            if job.taken is not None:
                end(RunFolder(job.run_dir))


def frozen(folder: RunFolder) -> psutil.Process:
    """The run's worker, stopped as it begins: it holds its devices and does no more."""
    wait_for(lambda: folder.process() is not None, limit=20, what="the worker")
    record = folder.process()
    assert record is not None
    os.kill(record.pid, signal.SIGSTOP)
    return psutil.Process(record.pid)


def end(folder: RunFolder) -> None:
    record = folder.process()
    if record is not None and psutil.pid_exists(record.pid):
        os.kill(record.pid, signal.SIGKILL)


def events_of(folder: RunFolder) -> list[tuple[str, str]]:
    with RunReader(folder.database) as reader:
        return [(event.kind, event.message) for event in reader.events()]


def test_runs_go_one_after_the_other_on_a_cpu_and_one_that_fails_stops_no_other(homes: Callable[[str], Home]) -> None:
    home = homes("a")
    first, gone, last = home.add(), home.add(), home.add()
    (gone.path / "config.yaml").unlink()
    home.queue.move(last.path, 1)
    assert home.serve().wait(60) == 0, home.log()
    assert home.queue.jobs() == []
    assert [supervisor.state_of(run).state for run in (first, last)] == ["failed", "failed"]
    began = {
        run.path: float((run.process() or pytest.fail("no worker")).started.rpartition(":")[2]) for run in (first, last)
    }
    assert began[last.path] < began[first.path]


def test_each_run_gets_gpus_of_its_own_in_order_and_a_new_dispatcher_knows_them(
    homes: Callable[[str], Home], tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nprintf '{CARDS}\\n'\n")
    program.chmod(0o755)
    home = homes("a")
    home.path_first = str(program.parent)
    one, other, both, after, never = home.add(), home.add(), home.add(2), home.add(), home.add(3)
    served = home.serve()
    workers = [frozen(one), frozen(other)]
    assert [worker.environ()[VISIBLE] for worker in workers] == ["0", "1"]
    assert home.queue.waiting() == [both.path, after.path, never.path]

    served.kill()
    served.wait()
    end(other)
    home.serve()
    wait_for(lambda: not home.queue.has(other.path), limit=20, what="the end of the second run")
    assert home.queue.waiting() == [both.path, after.path, never.path], "two GPUs are wanted next, and one is free"

    end(one)
    worker = frozen(both)
    assert worker.environ()[VISIBLE] == "0,1"
    assert home.queue.waiting() == [after.path, never.path]
    end(both)
    assert frozen(after).environ()[VISIBLE] == "0"
    end(after)
    wait_for(lambda: home.queue.jobs() == [], limit=20, what="an empty queue")
    kind, message = events_of(never)[-1]
    assert kind == "run_failed"
    assert "needs 3 GPUs, and this machine shows 0, 1; " in message
    assert never.process() is None


def test_two_homes_and_two_dispatchers_start_no_run_twice(homes: Callable[[str], Home]) -> None:
    first, second = homes("a"), homes("b")
    runs = [first.add() for _ in range(2)]
    for run in runs:
        second.queue.add(run.path)
    served = [first.serve(), second.serve(), first.serve()]
    assert [process.wait(90) for process in served] == [0, 0, 0]
    assert first.queue.jobs() == second.queue.jobs() == []
    for run in runs:
        kinds = [kind for kind, _ in events_of(run)]
        assert kinds.count("run_failed") == 1, kinds
        assert kinds.count("preparing") == len({message for kind, message in events_of(run) if kind == "preparing"})
        assert supervisor.state_of(run).state == "failed"
    left_alone = (first.log() + second.log()).count("left alone")
    assert left_alone == len(runs), first.log() + second.log()


def test_a_second_worker_leaves_a_run_and_its_record_alone(homes: Callable[[str], Home]) -> None:
    home = homes("a")
    run = home.add()
    home.serve()
    worker = frozen(run)
    before = events_of(run)
    command = [sys.executable, "-m", "grpo_studio.worker", str(run.path)]
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == ANOTHER_WORKER
    assert len(second.stderr.splitlines()) == 1
    assert events_of(run) == before
    record = run.process()
    assert record is not None
    assert (record.pid, record.exit_code) == (worker.pid, None)


@pytest.mark.slow
def test_a_run_that_was_taken_and_never_started_is_started(homes: Callable[[str], Home]) -> None:
    """What served the queue died after it took the job and before it started a worker."""
    home = homes("a")
    run, next_one = home.add(), home.add()
    assert home.queue.take(run.path, ["cpu"])
    assert home.serve().wait(60) == 0
    assert all("there is no folder" in events_of(folder)[-1][1] for folder in (run, next_one))


def test_a_damaged_queue_ends_what_serves_it_with_a_word(homes: Callable[[str], Home]) -> None:
    home = homes("a")
    home.settings.queue_path.write_bytes(b"no database " * 100)
    assert home.serve().wait(30) == 1
    assert "is damaged" in home.log()
    assert len(home.log().splitlines()) == 1
    home.settings.queue_path.unlink()
