"""A disk that really is full: a small one of the run's own, filled to the last byte while the run writes."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from faults import fill, require_nothing_lost, small_disk, state_within
from live_runs import start, step_of, worker_of
from studio_process import ROOT, as_json, studio, wait_for

from grpo_studio import supervisor
from grpo_studio.config import RunConfig
from grpo_studio.devices import Claim
from grpo_studio.disk import disk_of, free_bytes, is_disk_full, require_space, told_when_full
from grpo_studio.errors import DiskFullError
from grpo_studio.exit_codes import NOT_RECORDED_DISK_FULL
from grpo_studio.store.folder import RunFolder, create_run, write_whole
from grpo_studio.store.reader import RunReader
from grpo_studio.store.reserve import SIZE, set_aside
from grpo_studio.store.writer import RunWriter
from grpo_studio.worker_end import Ending, ending_by, tell
from grpo_studio.worker_process import record_of, start_worker

MB = 1_000_000


@pytest.fixture
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "16m", request) as place:
        yield place


@pytest.fixture
def folder(disk: Path) -> RunFolder:
    folder = create_run(disk / "runs", RunConfig(), "small")
    folder.write_process(record_of(os.getpid(), 1))
    return folder


def write_until_full(writer: RunWriter) -> tuple[int, BaseException]:
    for step in range(1, 100_000):
        try:
            with writer.transaction():
                writer.metrics(step, {f"metric/{number}": step / 7 for number in range(50)} | {"optim/loss": 1.0})
        except Exception as error:
            return step - 1, error
    raise AssertionError("the disk took all of it")


def dead(folder: RunFolder) -> RunFolder:
    """As it is once the worker, which is this process here, has gone."""
    text = folder.process_path.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {2**22 + 1}')
    with folder.process_path.open("r+") as file:
        file.write(text)
    return folder


def test_free_space_is_told_by_the_disk_that_a_path_lies_on(disk: Path) -> None:
    deep = disk / "not" / "there" / "yet"
    assert disk_of(deep) == str(disk)
    assert 15 * MB < free_bytes(deep) < 17 * MB
    require_space(deep, 15 * MB, "the checkpoint")
    with pytest.raises(DiskFullError) as caught:
        require_space(deep, 20 * MB, "the checkpoint")
    message = str(caught.value)
    assert message.startswith(f"the disk {disk} is full: the checkpoint needs 20 MB, 17 MB is free; free 3.2 MB more")


def test_every_writer_of_a_full_disk_is_understood(disk: Path) -> None:
    import torch
    from safetensors.torch import save_file

    fill(disk, leave=100_000)
    weights = {"weight": torch.zeros(500_000)}

    def by_sqlite() -> None:
        connection = sqlite3.connect(disk / "a.db")
        connection.execute("CREATE TABLE t AS SELECT zeroblob(4000000)")

    writers = (
        lambda: torch.save(weights, disk / "a.pt"),
        lambda: save_file(weights, disk / "a.safetensors"),
        lambda: (disk / "a").write_bytes(bytes(MB)),
        lambda: write_whole(disk / "b", bytes(MB)),
        by_sqlite,
    )
    for write in writers:
        with (
            pytest.raises(DiskFullError, match=f"the disk {disk} is full: it found no room"),
            told_when_full(disk, "it"),
        ):
            write()
        (disk / "a").unlink(missing_ok=True)
        (disk / "a.pt").unlink(missing_ok=True)
        (disk / "a.safetensors").unlink(missing_ok=True)
    assert sorted(path.name for path in disk.iterdir() if not path.name.startswith("a.db")) == ["ballast"]
    for other in (OSError(errno.EACCES, "no"), ValueError("full of nonsense"), KeyError("disk")):
        assert not is_disk_full(other)


def test_a_full_disk_pauses_the_run_by_room_that_was_set_aside(disk: Path, folder: RunFolder) -> None:
    set_aside(folder.path)
    writer = RunWriter(folder.database, 1)
    fill(disk, leave=300_000)
    steps, error = write_until_full(writer)
    fill(disk)
    assert tell(ending_by(error, folder), writer, folder) == 0
    writer.close()
    state = supervisor.state_of(dead(folder))
    assert state.state == "paused"
    assert state.reason.startswith(f"the disk {disk} is full: the run's record found no room, 0 bytes is free; ")
    assert 0 < steps == step_of(folder)
    set_aside_again = SIZE + 4096
    (disk / "ballast").unlink()
    set_aside(folder.path)
    assert set_aside_again > (folder.path / ".reserve").stat().st_size == SIZE


def test_without_any_room_at_all_the_exit_code_pauses_the_run(disk: Path, folder: RunFolder) -> None:
    """Another program has taken the reserve too: not one page can be added to the record."""
    writer = RunWriter(folder.database, 1)
    fill(disk, leave=200_000)
    steps, _ = write_until_full(writer)
    fill(disk)
    with suppress(sqlite3.OperationalError):  # a step that did not fit has left room for a few of these
        for _ in range(10_000):
            writer.event("filler", "x")
    code = tell(Ending("run_paused", "the disk is full"), writer, folder)
    writer.close()
    assert code != 0
    assert free_bytes(disk) == 0
    state = supervisor.state_of(dead(folder))
    assert (state.state, folder.process().exit_code) == ("paused", code)
    assert (
        state.reason
        == f"the disk was full, last step {steps}; make room on it first; no checkpoint was saved: start the run again"
    )
    with RunReader(folder.database) as reader:
        assert reader.rows("SELECT count(*) FROM metric")[0][0] == 51 * steps
    assert [path.name for path in folder.path.iterdir() if path.name.startswith(".process")] == []


def test_no_worker_is_started_on_a_full_disk(disk: Path, folder: RunFolder) -> None:
    folder.process_path.unlink()
    fill(disk, leave=100_000)
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises(DiskFullError, match=f"the disk {disk} is full: a run's record needs 262 KB, "):
        start_worker(folder, Claim((), (), ()))
    assert {child.pid for child in psutil.Process().children()} == before
    assert supervisor.state_of(folder).state == "queued"
    assert not (folder.path / ".reserve").exists()


def test_a_worker_that_cannot_open_its_record_says_so_by_its_exit_code(disk: Path, folder: RunFolder) -> None:
    folder.process_path.unlink()
    fill(disk)
    worker = subprocess.run(
        [sys.executable, "-m", "grpo_studio.worker", str(folder.path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert worker.returncode == NOT_RECORDED_DISK_FULL, worker.stderr


def test_a_record_on_a_full_disk_is_read_without_its_index(disk: Path, folder: RunFolder) -> None:
    """Its writer was killed and the index of its log is gone: SQLite would have to make it, and there is no room."""
    writer = RunWriter(folder.database, 1)
    writer.metrics(7, {"optim/loss": 0.5})
    kept = {name: (folder.path / name).read_bytes() for name in ("run.db", "run.db-wal")}
    writer.close()
    for name, data in kept.items():
        (folder.path / name).write_bytes(data)
    fill(disk)
    for _ in range(2):
        with RunReader(folder.database) as reader:
            assert reader.last_step() == 7
            assert [event.kind for event in reader.events()] == ["run_created"]


def test_a_run_on_a_disk_that_fills_up_pauses_and_all_its_rows_stay(disk: Path, tiny_model: Path) -> None:
    folder = start(tiny_model, disk, "--set", "checkpoint.every=0")
    wait_for(lambda: step_of(folder) >= 2, what="step 2")
    session = worker_of(folder).session
    before = step_of(folder)
    fill(disk)
    state = state_within(folder, "paused")
    assert state.reason.startswith(f"the disk {disk} is full: ")
    assert "is free; make room there" in state.reason
    require_nothing_lost(folder, before)
    assert session == folder.process().session
    shown = as_json(studio("show", folder.run_id, "--json", home=disk))
    assert (shown["state"], shown["reason"]) == (state.state, state.reason)
    assert shown["step"] >= before
