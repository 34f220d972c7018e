"""Five processes that read without pause beside one that writes as fast as it can: no error, no half a step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults import write_steps
from studio_process import ROOT

from grpo_studio.config import RunConfig
from grpo_studio.store.folder import create_run
from grpo_studio.store.writer import RunWriter

READERS = 5


@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_each_look_of_each_reader_is_of_one_moment(tmp_path: Path, seconds: int) -> None:
    folder = create_run(tmp_path / "runs", RunConfig(), "read")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    readers = [
        subprocess.Popen(
            [sys.executable, str(ROOT / "tests" / "reading_child.py"), str(folder.database), str(seconds)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        for _ in range(READERS)
    ]  # fmt: skip
    writer = RunWriter(folder.database, attempt=1)
    steps = 0
    while any(reader.poll() is None for reader in readers):
        steps += 1
        write_steps(writer, range(steps, steps + 1))
    writer.close()
    for reader in readers:
        said, trouble = reader.communicate()
        assert reader.returncode == 0, trouble
        looks, different = map(int, said.split())
        assert looks >= different > 1, "it read while nothing was written"
