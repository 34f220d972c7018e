from __future__ import annotations

import re
import threading
import time

import pytest

from grpo_studio.verifiers.time_bound import OutOfTime, time_bound


def test_a_regular_expression_that_backtracks_is_ended() -> None:
    with pytest.raises(OutOfTime), time_bound(0.05):
        re.search("(a+)+$", "a" * 60 + "!")


def test_code_that_catches_every_exception_is_ended_too() -> None:
    def stubborn() -> None:
        while True:
            try:
                sum(range(1000))
            except Exception:
                continue

    with pytest.raises(OutOfTime), time_bound(0.05):
        stubborn()


def test_nothing_is_left_running_after_the_block() -> None:
    with time_bound(0.05):
        pass
    for _ in range(200):
        sum(range(20_000))  # well over the bound


def test_an_inner_bound_leaves_the_outer_one_in_force() -> None:
    def work() -> None:
        with time_bound(60):
            pass
        re.search("(a+)+$", "a" * 60 + "!")

    with pytest.raises(OutOfTime), time_bound(0.1):
        work()


def test_what_an_inner_bound_used_is_used_of_the_outer_one_too() -> None:
    done: list[int] = []

    def work() -> None:
        for number in range(400):
            with time_bound(60):
                spend(0.01)
            done.append(number)

    with pytest.raises(OutOfTime), time_bound(0.2):
        work()
    assert len(done) < 60


def test_the_outer_bound_ends_work_inside_an_inner_one() -> None:
    ended_in = []

    def work() -> None:
        try:
            with time_bound(60):
                re.search("(a+)+$", "a" * 60 + "!")
        except OutOfTime:
            ended_in.append("inner")
            spend(1.0)  # over the outer bound already: it ends at once

    with pytest.raises(OutOfTime), time_bound(0.1):
        work()
    assert ended_in == ["inner"]


def test_an_inner_bound_that_is_reached_leaves_the_outer_one_the_rest() -> None:
    with time_bound(60):
        with pytest.raises(OutOfTime), time_bound(0.05):
            spend(10.0)
        spend(0.1)


def spend(seconds: float) -> None:
    """Use that much processor time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(1000))


def test_off_the_main_thread_the_work_simply_runs() -> None:
    done = []

    def work() -> None:
        with time_bound(1e-6):
            done.append(sum(range(100_000)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [4999950000]
