"""A silent writer takes what a writer takes, and nothing comes of it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from grpo_studio.store.records import CompletionRecord, GroupRecord, MemorySample, ScoreRecord
from grpo_studio.store.silent_writer import SilentWriter
from grpo_studio.store.writer import RunWriter


def everything(writer: RunWriter) -> set[str]:
    """Use every method of a writer once; returns their names."""
    score = ScoreRecord(verifier="rule", value=1.0, weight=1.0, seconds=0.1)
    completion = CompletionRecord(text="4", tokens=1, truncated=False, reward=1.0, advantage=0.0, scores=(score,))
    with writer.transaction():
        writer.metrics(1, {"optim/loss": 0.5})
        writer.groups(1, [GroupRecord("2 + 2", "4", (completion,), 1.0, 0.0)])
        writer.phase_times(1, {"loss": 0.1})
        writer.memory_samples([MemorySample(0.0, 1, "loss", "cpu", 1, 1, 1)])
    writer.event("warned", "words", data={"a": 1})
    writer.attempt_began(1, "checkpoint-1", "goes on after step 1")
    writer.close()
    return {"transaction", "metrics", "groups", "phase_times", "memory_samples", "event", "attempt_began", "close"}


def test_a_silent_writer_has_every_method_and_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    public = {name for name, _ in inspect.getmembers(RunWriter, inspect.isfunction) if not name.startswith("_")}
    assert everything(SilentWriter(attempt=2)) == public
    assert everything(RunWriter(tmp_path / "run.db", attempt=2)) == public
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("run.db")] == []


def test_an_error_within_a_silent_transaction_comes_through() -> None:
    with pytest.raises(ValueError, match="mine"), SilentWriter(1).transaction():
        raise ValueError("mine")
