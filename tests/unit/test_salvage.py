"""Damaged run.db files of every kind: what is whole is read, what is lost is said, the damaged file stays as it is."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import write_steps

from grpo_studio import supervisor
from grpo_studio.config import RunConfig
from grpo_studio.errors import StoreError
from grpo_studio.process_identity import start_token
from grpo_studio.run_state import RECORDS_LOST
from grpo_studio.store import salvage
from grpo_studio.store.folder import ProcessRecord, RunFolder, create_run
from grpo_studio.store.pages import open_pages
from grpo_studio.store.reader import RunReader
from grpo_studio.store.schema import MIGRATIONS
from grpo_studio.store.shapes import shapes
from grpo_studio.store.writer import RunWriter

PAGE = 4096
STEPS = 50
TABLES = ("metric", "prompt_group", "completion", "score", "memory_sample", "phase_time", "event", "attempt")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run of 60 steps whose worker was killed: its database holds them all, and no log lies beside it."""
    folder = create_run(tmp_path / "runs", RunConfig(), "whole")
    writer = RunWriter(folder.database, attempt=1)
    writer.event("training_started", "training")
    write_steps(writer, range(1, 41))
    writer.event("checkpoint_saved", "checkpoint-40 saved", data={"step": 40})
    writer.close()
    writer = RunWriter(folder.database, attempt=2)
    writer.attempt_began(40, "checkpoint-40", "goes on after step 40")
    writer.event("training_started", "training")
    write_steps(writer, range(41, STEPS + 1))
    writer.close()
    folder.write_process(ProcessRecord(2**22 + 1, "gone", 2**22 + 1, os.uname().nodename, 2, -9, 9))
    return folder


def content(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with RunReader(path) as reader:
        return {table: reader.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES}


def zero(path: Path, first: int, pages: int = 1) -> None:
    with path.open("r+b") as file:
        file.seek((first - 1) * PAGE)
        file.write(bytes(pages * PAGE))


def page_of(path: Path, table: str, which: float) -> int:
    """The number of a leaf page of a table, that far through it."""
    shape = next(shape for shape in shapes() if shape.table == table)
    with open_pages(path) as pages:
        leaves = [
            number
            for number in range(2, pages.count + 1)
            if pages.page(number)[0] in (0x0D, 0x0A)
            and any(shape.fits(record) for record in pages._cells(pages.page(number)))
        ]
    return leaves[int(which * (len(leaves) - 1))]


def test_a_whole_file_is_read_as_it_is_and_nothing_is_made(folder: RunFolder) -> None:
    rows = content(folder.database)
    assert len(rows["metric"]) == STEPS * 30
    assert salvage.replace(folder) == ""
    assert content(folder.database) == rows
    assert not salvage.recovered_path(folder.database).exists()


def bad_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\xff" * 100)


def bad_page_size(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(16)
        file.write(b"\x03\x07")


def bad_schema(path: Path) -> None:
    zero(path, 1)


def garbage_schema(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(2000)
        file.write(random.Random(1).randbytes(PAGE - 2000))


def half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def half_a_page_more(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // PAGE * PAGE + 1000)


def metric_page(path: Path) -> None:
    zero(path, page_of(path, "metric", 0.5))


def event_page(path: Path) -> None:
    zero(path, page_of(path, "event", 0.5))


def score_page(path: Path) -> None:
    zero(path, page_of(path, "score", 0.5))


def random_pages(path: Path) -> None:
    with path.open("r+b") as file:
        for number in range(7, path.stat().st_size // PAGE, 29):
            file.seek((number - 1) * PAGE)
            file.write(random.Random(number).randbytes(PAGE))


def interior_pages(path: Path) -> None:
    """The way to the rows is gone, the rows are not."""
    with open_pages(path) as pages:
        branches = [number for number in range(2, pages.count + 1) if pages.page(number)[0] == 0x05]
    assert branches
    for number in branches:
        zero(path, number)


DAMAGE = (
    bad_header, bad_page_size, bad_schema, garbage_schema, half, half_a_page_more, metric_page, event_page, score_page,
    random_pages, interior_pages,
)  # fmt: skip
LOSES_NO_ROW = (bad_header, bad_page_size, bad_schema, garbage_schema, interior_pages)


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_what_is_whole_is_read_and_what_is_lost_is_told(folder: RunFolder, damage: Callable[[Path], None]) -> None:
    rows = content(folder.database)
    damage(folder.database)
    damaged = folder.database.read_bytes()
    after = content(folder.database)
    for table in TABLES:
        added = 1 if table == "event" else 0
        kept = after[table][: len(after[table]) - added]
        if damage in LOSES_NO_ROW:
            assert kept == rows[table], table
        elif table != "attempt":  # that is made up for
            assert set(kept) <= set(rows[table]), table
    with RunReader(folder.database) as reader:
        last = reader.events()[-1]
        assert [began.from_step for began in reader.attempts()] == [0, 40]
    assert (last.kind, last.level, last.attempt) == (RECORDS_LOST, "error", 2)
    lost = sum(len(rows[table]) - len(after[table]) for table in TABLES) + 1
    assert ("lost" in last.message) == (lost > 0 or damage is interior_pages), last.message
    assert folder.database.read_bytes() == damaged
    state = supervisor.state_of(folder)
    assert state.state == "killed"
    assert "was damaged" in state.reason
    assert state.reason.endswith("; resume goes on after step 40")


def test_a_page_in_the_middle_costs_its_rows_and_their_number_is_told(folder: RunFolder) -> None:
    before = len(content(folder.database)["metric"])
    metric_page(folder.database)
    after = content(folder.database)
    missing = before - len(after["metric"])
    assert 20 < missing < 300
    assert f"1 of {folder.database.stat().st_size // PAGE:,} pages cannot be read" in str(after["event"][-1])
    assert f"rows are lost, among them {missing} metric values" in str(after["event"][-1])


def test_a_table_that_is_gone_whole_is_named(folder: RunFolder) -> None:
    event_page(folder.database)
    event_page_message = str(content(folder.database)["event"])
    assert "among them all events" in event_page_message


def test_the_part_that_is_cut_off_is_guessed_from_the_part_that_is_there(folder: RunFolder) -> None:
    before = content(folder.database)
    half(folder.database)
    after = content(folder.database)
    lost = sum(len(before[table]) - len(after[table]) for table in TABLES)
    told = int(re.search(r"about ([\d,]+) rows", after["event"][-1][5])[1].replace(",", ""))
    assert 0.5 * lost < told < 2 * lost


def test_garbage_at_the_end_loses_nothing(folder: RunFolder) -> None:
    rows = content(folder.database)
    with folder.database.open("ab") as file:
        file.write(random.Random(3).randbytes(3 * PAGE + 17))
    assert content(folder.database) == rows


@pytest.mark.parametrize("size", [0, 1, 99, 512])
def test_an_empty_file_is_a_run_that_recorded_nothing(folder: RunFolder, size: int) -> None:
    os.truncate(folder.database, size)
    with RunReader(folder.database) as reader:
        assert reader.counts() == (0, 0)
        assert reader.last_step() == 0
        assert reader.newest_attempt().attempt == 2
    state = supervisor.state_of(folder)
    assert state.state == "killed"
    assert "signal 9" in state.reason


def test_a_file_with_nothing_of_a_database_in_it_says_so(folder: RunFolder) -> None:
    folder.database.write_bytes(b"\xff" * 50 * PAGE)
    with RunReader(folder.database) as reader:
        assert "50 of 50 pages cannot be read" in reader.events()[-1].message


def test_a_folder_in_its_place_is_one_plain_error(folder: RunFolder) -> None:
    folder.database.unlink()
    folder.database.mkdir()
    with pytest.raises(StoreError, match=r"does not exist|cannot read"):
        RunReader(folder.database)


def test_rows_that_only_the_log_holds_are_read_from_it(folder: RunFolder, tmp_path: Path) -> None:
    """The writer is alive, or was killed: what it committed last is in run.db-wal alone."""
    writer = RunWriter(folder.database, attempt=2)
    write_steps(writer, range(STEPS + 1, STEPS + 6))
    rows = content(folder.database)
    copy = tmp_path / "copy"
    shutil.copytree(folder.path, copy)
    writer.close()
    zero(copy / "run.db", 1)
    (copy / "run.db-shm").unlink()
    after = content(copy / "run.db")
    assert after["metric"] == rows["metric"]
    assert after["completion"] == rows["completion"]
    assert after["score"] == rows["score"]


def test_a_log_that_is_cut_off_costs_what_was_written_last(folder: RunFolder, tmp_path: Path) -> None:
    writer = RunWriter(folder.database, attempt=2)
    write_steps(writer, range(STEPS + 1, STEPS + 6))
    copy = tmp_path / "copy"
    shutil.copytree(folder.path, copy)
    writer.close()
    log = copy / "run.db-wal"
    os.truncate(log, log.stat().st_size - 3000)
    zero(copy / "run.db", 1)
    with RunReader(copy / "run.db") as reader:
        assert reader.last_step() == STEPS + 4


def test_a_missing_log_leaves_the_rows_of_before(folder: RunFolder, tmp_path: Path) -> None:
    rows = content(folder.database)
    writer = RunWriter(folder.database, attempt=2)
    write_steps(writer, range(STEPS + 1, STEPS + 3))
    copy = tmp_path / "copy"
    shutil.copytree(folder.path, copy)
    writer.close()
    (copy / "run.db-wal").unlink()
    (copy / "run.db-shm").unlink()
    assert content(copy / "run.db") == rows


def test_damage_met_by_a_reader_that_is_open_is_got_over(folder: RunFolder) -> None:
    with RunReader(folder.database) as reader:
        assert reader.last_step() == STEPS
        metric_page(folder.database)
        with reader.snapshot():
            assert len(reader.rows("SELECT * FROM metric")) > STEPS * 25
            assert reader.events()[-1].kind == RECORDS_LOST


def test_the_recovered_file_is_made_once_and_again_when_the_file_changes(folder: RunFolder) -> None:
    bad_schema(folder.database)
    content(folder.database)
    recovered = salvage.recovered_path(folder.database)
    made = recovered.stat().st_ino
    content(folder.database)
    assert recovered.stat().st_ino == made
    os.utime(recovered, (1e9, 1e9))
    half(folder.database)
    with RunReader(folder.database) as reader:
        assert "the end of the file" in reader.events()[-1].message or reader.last_step() < STEPS
    assert recovered.stat().st_ino != made


def test_a_folder_that_takes_no_file_is_read_all_the_same(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk: the place of the recovered file is taken by a folder, so that none can be made."""
    bad_schema(folder.database)
    salvage.recovered_path(folder.database).mkdir()
    for _ in range(2):
        assert len(content(folder.database)["metric"]) == STEPS * 30
    assert [path.name for path in folder.path.iterdir() if path.name.startswith(".run")] == []


def test_a_run_goes_on_in_a_whole_file_and_the_damaged_one_is_kept(folder: RunFolder) -> None:
    metric_page(folder.database)
    damaged = folder.database.read_bytes()
    lost = salvage.replace(folder)
    assert "metric values" in lost
    assert (folder.path / "run.db.damaged").read_bytes() == damaged
    assert not salvage.recovered_path(folder.database).exists()
    writer = RunWriter(folder.database, attempt=3)
    writer.attempt_began(40, "checkpoint-40", "goes on after step 40")
    writer.close()
    with RunReader(folder.database) as reader:
        assert [event.kind for event in reader.events()][-2:] == [RECORDS_LOST, "attempt_began"]
        assert reader.events()[-2].message == lost
    assert sqlite3.connect(folder.database).execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert salvage.replace(folder) == ""


@pytest.mark.parametrize("done", [1, 2, 3])
def test_a_replacement_that_was_interrupted_is_brought_to_its_end(folder: RunFolder, done: int) -> None:
    """After each of its steps: run.db is moved away, then its log, then the log's index."""
    writer = RunWriter(folder.database, attempt=2)
    writer.metrics(STEPS + 1, {"optim/loss": 0.25})
    kept = {name: (folder.path / name).read_bytes() for name in ("run.db", "run.db-wal", "run.db-shm")}
    writer.close()
    for name, data in kept.items():
        (folder.path / name).write_bytes(data)
    bad_schema(folder.database)
    with RunReader(folder.database) as reader:
        assert reader.last_step() == STEPS + 1
    moves = [("run.db", "run.db.damaged"), ("run.db-wal", "run.db.damaged-wal"), ("run.db-shm", "gone")]
    for before, after in moves[:done]:
        (folder.path / before).rename(folder.path / after)
    with RunReader(folder.database) as reader:
        assert reader.last_step() == STEPS + 1
    assert "was damaged" in salvage.replace(folder)
    with RunReader(folder.database) as reader:
        assert reader.last_step() == STEPS + 1
    assert (folder.path / "run.db.damaged").is_file()


def test_rows_of_each_table_are_told_apart_by_their_shape() -> None:
    """Whatever is added to the tables: a row of one must fit no other."""
    from grpo_studio.store.pages import Record

    for shape in shapes():
        sample = {"INTEGER": 5, "REAL": 0.5, "TEXT": "text", "BLOB": b"data"}
        values = tuple(None if index == shape.key else sample[kind] for index, kind in enumerate(shape.types))
        least = tuple(
            None if index == shape.key or shape.nullable[index] else sample[kind]
            for index, kind in enumerate(shape.types)
        )
        whole_numbers = tuple(7 if value == 0.5 else value for value in values)
        for row in (values, least, whole_numbers):
            record = Record(None if shape.key is None else 1, row)
            assert [other.table for other in shapes() if other.fits(record)] == [shape.table]
    assert len(shapes()) == sum(migration.count("CREATE TABLE") for migration in MIGRATIONS)


def test_a_worker_that_lives_is_still_seen_to_live(folder: RunFolder) -> None:
    me = os.getpid()
    folder.write_process(ProcessRecord(me, start_token(me) or "", os.getsid(0), os.uname().nodename, 2))
    metric_page(folder.database)
    assert supervisor.state_of(folder).state == "running"
