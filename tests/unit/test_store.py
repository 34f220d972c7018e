"""The run folder and its database: whole or not at all, readable beside the writer, safe from hostile text."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.errors import RunNotFoundError, StoreError
from grpo_studio.store.folder import RunFolder, create_run, find_run, run_folders, slug
from grpo_studio.store.reader import RunReader
from grpo_studio.store.records import CompletionRecord, GroupRecord, ScoreRecord
from grpo_studio.store.schema import MIGRATIONS
from grpo_studio.store.writer import RunWriter

HOSTILE = "\ud800 <script>alert(1)</script> \x00 ' ; DROP TABLE metric; --"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return create_run(tmp_path / "runs", RunConfig(), "My run!")


def group(text: str) -> GroupRecord:
    scores = (ScoreRecord("v", None, 1.0, reason=text, outcome="abstained"),)
    return GroupRecord(text, text, (CompletionRecord(text, 3, True, None, None, scores),), None, None)


def test_a_new_run_is_whole(folder: RunFolder) -> None:
    assert folder.run_id.endswith(slug("My run!") + folder.run_id[-5:])
    assert folder.config() == RunConfig()
    with RunReader(folder.database) as reader:
        assert [event.kind for event in reader.events()] == ["run_created"]
        assert reader.last_step() == 0
        assert reader.counts() == (0, 0)


def test_numbers_that_are_not_finite_are_stored_as_null(folder: RunFolder) -> None:
    writer = RunWriter(folder.database, attempt=1)
    writer.metrics(1, {"a": float("nan"), "b": float("inf"), "c": None, "d": 1.5})
    writer.event("odd", "values", data={"x": [float("nan"), 1]})
    writer.close()
    with RunReader(folder.database) as reader:
        assert reader.last_metrics() == {"a": None, "b": None, "c": None, "d": 1.5}
        assert reader.events()[-1].data == {"x": [None, 1]}
        json.dumps(reader.last_metrics(), allow_nan=False)


def test_any_text_can_be_recorded(folder: RunFolder) -> None:
    writer = RunWriter(folder.database, attempt=1)
    writer.groups(1, [group(HOSTILE)])
    writer.event("hostile", HOSTILE)
    writer.close()
    with RunReader(folder.database) as reader:
        text = reader.rows("SELECT text FROM completion")[0][0]
        assert "<script>" in text
        assert "\ud800" not in text
        assert reader.counts() == (1, 1)


def test_a_step_appears_whole_or_not_at_all(folder: RunFolder) -> None:
    writer = RunWriter(folder.database, attempt=1)

    class StepError(Exception):
        pass

    def half_a_step() -> None:
        with writer.transaction():
            writer.metrics(1, {"a": 1.0})
            raise StepError

    with RunReader(folder.database) as reader:
        before = reader.cursor()
        with pytest.raises(StepError):
            half_a_step()
        assert reader.cursor() == before
        with writer.transaction():
            writer.metrics(1, {"a": 1.0})
            assert reader.cursor() == before
        assert reader.cursor().metric == before.metric + 1
    writer.close()


def test_a_reader_can_not_write_and_does_not_create(tmp_path: Path, folder: RunFolder) -> None:
    with RunReader(folder.database) as reader, pytest.raises(StoreError, match="readonly"):
        reader.rows("DELETE FROM event")
    with pytest.raises(StoreError, match="recorded nothing"):
        RunReader(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    assert not (folder.path / "run.recovered.db").exists()


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    path.write_bytes(b"not a database at all" * 100)
    with RunReader(path) as reader:
        assert "file is not a database" in reader.events()[-1].message
    with pytest.raises(StoreError, match="not a database"):
        RunWriter(path, attempt=1)


def test_a_file_of_a_newer_version_is_left_alone(folder: RunFolder) -> None:
    with sqlite3.connect(folder.database) as connection:
        connection.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(StoreError, match="newer GRPO Studio"):
        RunWriter(folder.database, attempt=1)


def test_runs_are_found_by_id_part_and_latest(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    first = create_run(runs, RunConfig(), "alpha", now=1_000_000_000)
    second = create_run(runs, RunConfig(), "beta", now=1_100_000_000)
    (runs / "stray").mkdir()
    (runs / ".new-half").mkdir()
    assert [folder.run_id for folder in run_folders(runs)] == [second.run_id, first.run_id]
    assert find_run(runs, "latest") == second
    assert find_run(runs, "alpha") == first
    assert find_run(runs, first.run_id) == first
    for unknown in ("", "../../etc", "gamma", "/", "."):
        with pytest.raises(RunNotFoundError):
            find_run(runs, unknown)
    with pytest.raises(RunNotFoundError, match="could be 2 runs"):
        find_run(runs, "a")
    with pytest.raises(RunNotFoundError, match="no runs"):
        find_run(tmp_path / "nowhere", "latest")


def test_an_unwritable_runs_folder_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file in the way")
    with pytest.raises(StoreError, match="--runs-dir"):
        create_run(tmp_path / "runs", RunConfig())
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
