"""What a run tells of itself as it begins: read of any record, whoever wrote it."""

from __future__ import annotations

import platform
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from sample_run import SampleRun

from grpo_studio.run_facts import setup_of, versions_in
from grpo_studio.settings import Settings
from grpo_studio.store.reader import RunReader
from grpo_studio.versions import installed, of_this_process


def setup(run: SampleRun) -> dict[str, Any]:
    with RunReader(run.folder.database) as reader:
        return setup_of(reader)


def test_the_newest_setup_counts_and_before_one_there_is_nothing(settings: Settings) -> None:
    run = SampleRun(settings.home)
    run.begin()
    assert setup(run) == {}
    for card in ("NVIDIA L4", "NVIDIA H200"):
        run.writer.event("setup", "sizes", data={"card": card})
    assert setup(run) == {"card": "NVIDIA H200"}


@pytest.mark.parametrize("damaged", ["{", "[1]", "7", "null", "", "[" * 100_000])
def test_a_setup_that_is_no_object_is_passed_over(settings: Settings, damaged: str) -> None:
    run = SampleRun(settings.home)
    run.writer.event("setup", "sizes", data={"dtype": "float32"})
    with closing(sqlite3.connect(run.folder.database)) as other, other:
        other.execute(
            "INSERT INTO event(attempt, ts, level, kind, message, data) VALUES (1, 0, 'info', 'setup', '', ?)",
            (damaged,),
        )
    assert setup(run) == {"dtype": "float32"}


@pytest.mark.parametrize(
    "text", ["1.0\n--index-url http://elsewhere", "1.0; import os", "", "v1", " 1.0", "1.0 ", "1" * 61, 1, None, ["1"]]
)
def test_a_version_from_outside_is_a_version_or_nothing(text: Any) -> None:
    assert versions_in({"versions": {"torch": text, "trl": "1.16.0.dev0+g1"}}) == {"trl": "1.16.0.dev0+g1"}


@pytest.mark.parametrize("told", [{}, {"versions": None}, {"versions": ["torch"]}, {"versions": "torch"}])
def test_a_setup_without_versions_tells_none(told: dict[str, Any]) -> None:
    assert versions_in(told) == {}


def test_a_process_tells_its_libraries_python_and_this_program() -> None:
    told = of_this_process()
    assert versions_in({"versions": told}) == told
    assert told["python"] == platform.python_version()
    assert {"grpo_studio", "torch", "transformers", "trl"} <= told.keys()
    assert installed(["no-such-package"]) == {}
