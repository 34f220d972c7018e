"""The queue on disk: order, places, several processes on one file, files of older versions and damaged ones."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from grpo_studio.errors import StoreError
from grpo_studio.job_queue import JobQueue

A, B, C, D = (Path(f"/runs/{name}") for name in "abcd")


@pytest.fixture
def queue(tmp_path: Path) -> JobQueue:
    queue = JobQueue(tmp_path / "queue.db")
    for run in (A, B, C, D):
        assert queue.add(run)
    return queue


def test_runs_wait_in_the_order_in_which_they_came(queue: JobQueue) -> None:
    assert queue.waiting() == [A, B, C, D]
    assert not queue.add(B)
    assert queue.waiting() == [A, B, C, D]


def test_what_was_taken_stands_first_with_its_devices_and_waits_no_more(queue: JobQueue) -> None:
    assert queue.take(B, ["1", "2"])
    assert not queue.take(B, ["3"])
    assert [job.run_dir for job in queue.jobs()] == [B, A, C, D]
    assert queue.jobs()[0].devices == ("1", "2")
    assert queue.waiting() == [A, C, D]
    assert not queue.remove(B, only_waiting=True)
    assert queue.has(B)
    assert queue.remove(B)
    assert not queue.remove(B)


@pytest.mark.parametrize(
    ("run", "place", "order"),
    [
        (C, 1, [C, A, B, D]),
        (A, 4, [B, C, D, A]),
        (A, 2, [B, A, C, D]),
        (D, 3, [A, B, D, C]),
        (B, 2, [A, B, C, D]),
    ],
)
def test_a_waiting_run_takes_the_place_that_it_is_given(
    queue: JobQueue, run: Path, place: int, order: list[Path]
) -> None:
    queue.move(run, place)
    assert queue.waiting() == order
    queue.add(Path("/runs/e"))
    assert queue.waiting() == [*order, Path("/runs/e")]


def test_a_move_leaves_what_runs_alone_and_places_are_those_of_the_waiting(queue: JobQueue) -> None:
    queue.take(A, ["cpu"])
    queue.move(D, 1)
    assert [job.run_dir for job in queue.jobs()] == [A, D, B, C]


@pytest.mark.parametrize(("run", "place"), [(B, 0), (B, 5), (B, -1), (Path("/runs/x"), 1)])
def test_a_place_that_there_is_not_moves_nothing(queue: JobQueue, run: Path, place: int) -> None:
    with pytest.raises(ValueError, match=r"place|wait"):
        queue.move(run, place)
    assert queue.waiting() == [A, B, C, D]


def test_a_run_that_is_given_back_waits_at_its_old_place(queue: JobQueue) -> None:
    queue.take(A, ["0"])
    queue.take(B, ["1"])
    assert queue.give_back(B)
    assert queue.waiting() == [B, C, D]
    assert queue.jobs()[1].devices is None


def test_of_many_who_take_a_run_at_once_one_gets_it(tmp_path: Path) -> None:
    path, got = tmp_path / "queue.db", []
    JobQueue(path).add(A)
    threads = [threading.Thread(target=lambda: got.append(JobQueue(path).take(A, ["0"]))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 7 + [True]


def test_a_queue_of_an_older_version_keeps_its_jobs(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE job(position INTEGER PRIMARY KEY AUTOINCREMENT, run_dir TEXT NOT NULL UNIQUE, "
            "enqueued REAL NOT NULL, taken REAL)"
        )
        db.execute("INSERT INTO job(run_dir, enqueued, taken) VALUES ('/runs/a', 1.0, 2.0), ('/runs/b', 1.0, NULL)")
    db.close()
    queue = JobQueue(path)
    assert [(job.run_dir, job.devices) for job in queue.jobs()] == [(A, None), (B, None)]
    assert queue.take(B, ["0"])


def test_the_order_is_not_the_clock_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = JobQueue(tmp_path / "queue.db")
    for run, now in ((A, 2e9), (B, 1e9), (C, 0.0)):
        monkeypatch.setattr("time.time", lambda now=now: now)
        queue.add(run)
    assert queue.waiting() == [A, B, C]


@pytest.mark.parametrize("content", [b"no database at all, " * 50, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_queue_is_told_with_the_way_out(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "queue.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"queue\.db is damaged.*; move it away.*resume RUN"):
        JobQueue(path).jobs()
    path.unlink()
    assert JobQueue(path).jobs() == []


def test_a_queue_in_a_folder_that_is_gone_is_no_damage(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot use the queue"):
        JobQueue(tmp_path / "gone" / "queue.db").add(A)
