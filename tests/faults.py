"""What the tests of faults share: a small real disk, workers with a fault, what must hold after every one of them."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from live_runs import family
from studio_process import ROOT, wait_for

from grpo_studio import supervisor
from grpo_studio.run_state import RunState
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader
from grpo_studio.store.records import CompletionRecord, GroupRecord, MemorySample, ScoreRecord
from grpo_studio.store.writer import RunWriter

WITHIN = 10.0
"""Seconds after a fault in which the state shown has to be true."""
LONG = "résumé of a long answer; " * 400
"""More than two pages, so that it goes on in pages of its own."""
IN_A_NAMESPACE = "GRPO_STUDIO_TESTS_IN_A_NAMESPACE"


def with_fault(fault: str) -> dict[str, str]:
    """The environment of a worker that has a fault of tests/fault_hooks."""
    return {"FAULT": fault, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "fault_hooks"), str(ROOT)])}


@contextmanager
def small_disk(place: Path, size: str, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A disk of its own of so many bytes, mounted at `place`.

    Who may not mount runs the test again where everybody may, in a namespace of its own, and takes its result.
    """
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        if IN_A_NAMESPACE in os.environ:
            pytest.fail(f"no small disk can be mounted here: {mounted.stderr}")
        again = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-m", "pytest", request.node.nodeid],
            cwd=ROOT, env={**os.environ, IN_A_NAMESPACE: "1"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if again.returncode != 0:
            pytest.fail(f"{mounted.stderr}\n{again.stdout}\n{again.stderr}")
        pytest.skip("has passed in a namespace of its own, where a disk could be mounted")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path, leave: int = 0) -> Path:
    """Write until the disk takes no more, then give `leave` bytes back; returns the file that does it."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for piece in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * piece)
            except OSError:
                continue
        os.truncate(ballast, max(os.fstat(file.fileno()).st_size - leave, 0))
    return ballast


def state_within(folder: RunFolder, *states: str) -> RunState:
    """The state of a run, which has to be one of these within the limit."""
    wait_for(lambda: supervisor.state_of(folder).state in states, limit=WITHIN, what=f"one of the states {states}")
    return supervisor.state_of(folder)


def require_nothing_lost(folder: RunFolder, steps: int) -> None:
    """What was committed can be read, whole, and no process is left."""
    with closing(sqlite3.connect(f"file:{folder.database}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with RunReader(folder.database) as reader:
        groups, completions = reader.counts()
        assert completions == 4 * groups
        assert reader.last_step() >= steps
        assert reader.rows("SELECT count(DISTINCT step) FROM metric WHERE name = 'optim/loss'")[0][0] >= steps
    process = folder.process()
    assert process is not None
    wait_for(lambda: family(process.session) == [], limit=WITHIN, what="the end of all of its processes")


def write_steps(writer: RunWriter, steps: range) -> None:
    """What a worker records of steps: 2 groups of 4 with two verifiers, 30 metrics."""
    for step in steps:
        completions = tuple(
            CompletionRecord(
                LONG if index == 0 else f"answer {step} {index}", 9, False, 1.0, 0.0,
                (ScoreRecord("math", 1.0, 1.0, 0.25, "right", "12"), ScoreRecord("form", None, 0.5, outcome="abstained")),
            )
            for index in range(4)
        )  # fmt: skip
        with writer.transaction():
            writer.groups(step, [GroupRecord(f"question {step}", "12", completions, 1.0, 0.0)] * 2)
            writer.metrics(step, {f"some/metric{n}": n + step / 7 for n in range(29)} | {"optim/loss": 0.5})
            writer.phase_times(step, {"rollout": 1.0, "loss": 0.25})
            writer.memory_samples([MemorySample(1e9 + step, step, "loss", "cpu", None, None, 2**33)] * 3)
            writer.event("step", f"step {step} done", data={"step": step})
