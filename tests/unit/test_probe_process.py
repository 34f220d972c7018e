"""How a probe's child ends, and what is made of it: done, out of memory, another failure; nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from child_process import ends

from grpo_studio.memory.probe_process import Answer, ask
from grpo_studio.memory.probe_run import PREFIX
from grpo_studio.temporary_folder import interrupted_by_signals, temporary_folder

TESTS = Path(__file__).resolve().parent.parent


def asked(folder: Path, **spec: Any) -> tuple[Answer, list[str]]:
    told: list[str] = []
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    return ask("ended_child", spec, folder, environment, told.append), told


def test_all_that_a_child_finds_is_taken_as_it_comes(tmp_path: Path) -> None:
    messages = [
        {"tell": "loading"}, {"found": {"loss": 1.0}}, {"found": {"note": "disk"}}, {"tell": "timing"}, {"found": {"seconds": 2}},
    ]  # fmt: skip
    answer, told = asked(tmp_path, messages=messages)
    assert answer == Answer({"loss": 1.0, "seconds": 2}, ["disk"], None, False)
    assert told == ["loading", "timing"]


@pytest.mark.parametrize(
    ("spec", "memory", "error"),
    [
        ({"signal": 9}, True, "out of memory: the process was killed by signal 9"),
        (
            {"signal": 6, "words": "terminate called\n  what():  std::bad_alloc"},
            True,
            "out of memory: the process was killed by signal 6",
        ),
        ({"code": 1, "words": "ImportError: x.so: failed to map segment from shared object"}, True, "out of memory: "),
        (
            {"code": 1, "words": "Traceback\nMemoryError"},
            True,
            "out of memory: the process ended with exit code 1: MemoryError",
        ),
        ({"signal": 11, "words": "Fatal"}, False, "the process was killed by signal 11: Fatal"),
        (
            {"code": 3, "words": "no\x1b[31m such\nfile; run rm"},
            False,
            "the process ended with exit code 3: file;run rm",
        ),
        ({"code": 1, "words": "Loading: 100%|####| 3/3"}, False, "the process ended with exit code 1"),
        ({"messages": [{"error": "x: too small", "memory": True}], "code": 1}, True, "out of memory: x: too small"),
        ({"messages": [{"error": "x: wrong; use y", "memory": False}], "code": 1}, False, "x: wrong; use y"),
    ],
    ids=["killed", "aborted", "no-map", "python", "fault", "exit", "progress-bar", "told-memory", "told-error"],
)
def test_want_of_memory_is_a_data_point_and_other_ends_are_one_line(
    tmp_path: Path, spec: dict[str, Any], memory: bool, error: str
) -> None:
    answer, _ = asked(tmp_path, **{"messages": [{"found": {"loss": 1.0}}, *spec.pop("messages", [])]}, **spec)
    assert (answer.memory, answer.found) == (memory, {"loss": 1.0})
    assert (answer.error or "").startswith(error)
    assert (answer.error or "").isprintable()


def test_an_interruption_ends_the_child_and_what_it_started(tmp_path: Path) -> None:
    grandchild = tmp_path / "pid"

    def interrupt(what: str) -> None:
        raise KeyboardInterrupt

    spec = {"messages": [{"tell": "begun"}], "sleeps": 600, "leaves_a_child": str(grandchild)}
    with pytest.raises(KeyboardInterrupt):
        ask("ended_child", spec, tmp_path, os.environ | {"PYTHONPATH": str(TESTS)}, interrupt)
    assert ends(int(grandchild.read_text()))


def test_a_folder_is_gone_afterwards_and_a_killed_one_s_with_the_next(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    dead, alive = tmp_path / f"{PREFIX}{child.pid}-x", tmp_path / f"{PREFIX}{os.getpid()}-y"
    for folder in (dead, alive):
        folder.mkdir()
    (tmp_path / f"{PREFIX}notes").write_text("a person's own")
    with temporary_folder(tmp_path, PREFIX) as used:
        assert used.is_dir()
        assert not dead.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([alive.name, f"{PREFIX}notes"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_clears_up_as_an_interruption_does(tmp_path: Path, number: signal.Signals) -> None:
    before = signal.getsignal(number)

    def interrupted() -> None:
        with interrupted_by_signals(), temporary_folder(tmp_path, PREFIX):
            os.kill(os.getpid(), number)
            signal.pause()

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(number) == before
