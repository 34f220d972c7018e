"""Whom clearing up after a worker may kill: what it left, and never a stranger whose session has its number."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from grpo_studio.process_identity import BOOT_ID, start_token
from grpo_studio.worker_process import GONE, kill_session

CHILD = "import time; time.sleep(100)"
LEADER = (
    "import subprocess, sys\n"
    "child = subprocess.Popen([sys.executable, '-S', '-c', sys.argv[1]], cwd=sys.argv[2])\n"
    "print(child.pid, flush=True)\n"
    "if sys.argv[3] == 'stay':\n    child.wait()\n"
)


class Session:
    """A leader and its child, in a session of their own."""

    def __init__(self, cwd: Path, then: str) -> None:
        self.leader = subprocess.Popen(
            [sys.executable, "-S", "-c", LEADER, CHILD, str(cwd), then],
            stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert self.leader.stdout is not None
        self.started = start_token(self.leader.pid) or GONE
        self.child = psutil.Process(int(self.leader.stdout.readline()))
        if then == "go":
            self.leader.wait()

    def close(self) -> None:
        self.leader.kill()
        self.leader.wait()
        if self.leader.stdout is not None:
            self.leader.stdout.close()
        with suppress(psutil.NoSuchProcess):
            self.child.kill()

    @property
    def child_lives(self) -> bool:
        return self.child.is_running() and self.child.status() != psutil.STATUS_ZOMBIE


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    return run


@pytest.fixture
def staying(run: Path) -> Iterator[Session]:
    session = Session(run, "stay")
    yield session
    session.close()


@pytest.fixture
def orphaned(run: Path) -> Iterator[Session]:
    """The leader is gone, its child is not."""
    session = Session(run, "go")
    yield session
    session.close()


def test_all_of_a_worker_is_ended(staying: Session) -> None:
    kill_session(staying.leader.pid, staying.started)
    assert staying.leader.wait(5) < 0
    assert not staying.child_lives


def test_orphans_of_a_worker_are_ended(orphaned: Session) -> None:
    kill_session(orphaned.leader.pid, orphaned.started)
    assert not orphaned.child_lives


def test_a_stranger_who_leads_a_session_of_that_number_is_left_alone(staying: Session) -> None:
    boot = BOOT_ID.read_text().strip()
    for started in (f"{boot}:1", f"{boot}:{10**15}", GONE):
        kill_session(staying.leader.pid, started)
    assert staying.leader.poll() is None
    assert staying.child_lives


def test_nothing_of_another_boot_can_be_left(orphaned: Session) -> None:
    ticks = orphaned.started.rpartition(":")[2]
    kill_session(orphaned.leader.pid, f"00000000-0000-0000-0000-000000000000:{ticks}")
    assert orphaned.child_lives


def test_who_is_older_than_the_worker_is_none_of_its_children(orphaned: Session) -> None:
    boot, _, ticks = orphaned.started.rpartition(":")
    kill_session(orphaned.leader.pid, f"{boot}:{int(ticks) + 10**6}")
    assert orphaned.child_lives


def test_who_did_not_see_the_end_ends_only_what_works_in_the_run(orphaned: Session, tmp_path: Path, run: Path) -> None:
    kill_session(orphaned.leader.pid, orphaned.started, tmp_path / "another run")
    assert orphaned.child_lives
    kill_session(orphaned.leader.pid, orphaned.started, run)
    assert not orphaned.child_lives


def test_what_holds_the_log_open_is_of_the_run(tmp_path: Path, run: Path) -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-S', '-c', sys.argv[1]], cwd='/'); "
    with (run / "worker.log").open("wb") as log:
        leader = subprocess.Popen(
            [sys.executable, "-S", "-c", code + "import time; time.sleep(0.3)", CHILD],
            cwd="/", stdout=log, start_new_session=True,
        )  # fmt: skip
    started = start_token(leader.pid) or GONE
    leader.wait()
    left = [process for process in psutil.process_iter() if _session(process.pid) == leader.pid]
    assert len(left) == 1
    kill_session(leader.pid, started, run)
    deadline = time.monotonic() + 5
    while left[0].is_running() and left[0].status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _session(left[0].pid) != leader.pid or left[0].status() == psutil.STATUS_ZOMBIE


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None
