"""Whose turn it is to sample: not beside a run on the GPU, one process at a time, the same samples once."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from bench_rows import LONG, children, config
from studio_process import wait_for

from grpo_studio.config import RunConfig
from grpo_studio.errors import ModelError
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, create_run
from grpo_studio.verifiers.bench.beside import living_run
from grpo_studio.verifiers.bench.request import SamplingRequest
from grpo_studio.verifiers.bench.sampling import start_sampling
from grpo_studio.verifiers.bench.sampling_turns import SamplingTurns
from grpo_studio.worker_process import record_of


class Asker(threading.Thread):
    """Somebody who wants samples, and gives up when told."""

    def __init__(self, turns: SamplingTurns, request: SamplingRequest) -> None:
        super().__init__(daemon=True)
        self.turns, self.request = turns, request
        self.give_up = threading.Event()
        self.said: list[str] = []
        self.groups: tuple = ()
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.groups = self.turns.sample(self.request, self._report)
        except (InterruptedError, ModelError) as error:
            self.error = error

    def _report(self, message: str, done: int, wanted: int) -> None:
        self.said.append(message)
        if self.give_up.is_set():
            raise InterruptedError


@pytest.fixture
def run(settings: Settings) -> RunFolder:
    """A run whose worker is alive: this process."""
    folder = create_run(settings.runs_dir, RunConfig(), "busy", now=time.time() - 60)
    folder.write_process(record_of(os.getpid(), attempt=1))
    return folder


@pytest.fixture
def on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def test_only_a_living_worker_of_this_machine_counts(settings: Settings, run: RunFolder) -> None:
    damaged = create_run(settings.runs_dir, RunConfig(), "damaged")
    damaged.process_path.write_text("{")
    assert living_run(settings) == run.run_id
    run.write_process(record_of(2**22 + 1, attempt=1))
    assert living_run(settings) == ""


def test_beside_a_run_on_the_gpu_nothing_is_sampled(
    settings: Settings, run: RunFolder, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '0, GPU-0-abc, NVIDIA H0, 81920, 0'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with pytest.raises(ModelError, match=f"run {run.run_id} has the GPU; sample when it has ended, or stop it first"):
        start_sampling(SamplingRequest.of(config(tiny_model), 2, 2), settings)
    assert children() == []


@pytest.mark.usefixtures("on_a_cpu")
def test_beside_a_run_on_the_cpu_it_is_said_that_it_will_be_slow(
    settings: Settings, run: RunFolder, tiny_model: Path
) -> None:
    job = start_sampling(SamplingRequest.of(config(tiny_model, tokens=LONG), 40, 40), settings)
    wait_for(lambda: f"(slow, for run {run.run_id} uses this CPU too)" in job.poll().message, what="the note")
    job.cancel()


def test_the_same_samples_are_made_once_and_others_wait(settings: Settings, tiny_model: Path) -> None:
    turns = SamplingTurns(settings)
    long, other = (SamplingRequest.of(config(tiny_model, tokens=n), 40, 40) for n in (LONG, LONG + 1))
    first, second = Asker(turns, long), Asker(turns, long)
    wait_for(lambda: first.said and second.said, what="both to be told of the one job")
    third = Asker(turns, other)
    wait_for(lambda: len(third.said) > 1, what="the third to be told")
    assert set(third.said) == {"waiting"}
    wait_for(lambda: len(children()) == 1, what="the sampling process")
    [process] = children()
    first.give_up.set()
    first.join(10)
    assert process.is_running(), "somebody still waits for it"
    second.give_up.set()
    wait_for(lambda: third.said[-1] != "waiting", what="the turn of the third")
    assert process.pid not in [child.pid for child in children()]
    third.give_up.set()
    third.join(10)
    assert all(isinstance(one.error, InterruptedError) for one in (first, second, third))
    wait_for(lambda: not children(), what="the end of the last process")


def test_two_who_want_the_same_both_get_it_and_kept_samples_wait_for_nobody(
    settings: Settings, tiny_model: Path
) -> None:
    turns = SamplingTurns(settings)
    short = SamplingRequest.of(config(tiny_model), 2, 2)
    both = [Asker(turns, short), Asker(turns, short)]
    for one in both:
        one.join(120)
    assert both[0].groups == both[1].groups
    assert [len(group.completions) for group in both[0].groups] == [2, 2]
    blocker = Asker(turns, SamplingRequest.of(config(tiny_model, tokens=LONG), 40, 40))
    wait_for(lambda: bool(blocker.said), what="others to be sampled")
    assert turns.sample(short, lambda *at: pytest.fail("kept samples are there at once")) == both[0].groups
    blocker.give_up.set()
    blocker.join(10)


def test_a_failure_is_told_and_the_next_one_has_its_turn(settings: Settings, tiny_model: Path) -> None:
    turns = SamplingTurns(settings)
    base = config(tiny_model)
    wrong = base.model_copy(update={"dataset": base.dataset.model_copy(update={"source": "/no/rows.jsonl"})})
    for _ in range(2):
        failed = Asker(turns, SamplingRequest.of(wrong, 2, 2))
        failed.join(120)
        assert "there is no file" in str(failed.error)
