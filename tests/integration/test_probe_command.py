"""`probe` from the command line: its result, what is refused, and that nothing of a broken one stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from studio_process import ROOT, as_json, studio, wait_for

from grpo_studio.commands import run
from grpo_studio.config import RunConfig
from grpo_studio.devices import Claim, claim
from grpo_studio.errors import TrainingError
from grpo_studio.job_queue import JobQueue
from grpo_studio.memory import probe_devices
from grpo_studio.memory.probe_devices import probe_claim
from grpo_studio.memory.probe_document import ProbeDocument
from grpo_studio.memory.probe_run import PREFIX
from grpo_studio.memory.probes import probe_results, read_probe
from grpo_studio.settings import Settings


def command(*more: str, model: Path) -> list[str]:
    return ["probe", "--preset", "quickstart", "--set", f"model.id={model}", "--set", "model.dtype=float32", *more]


def children_of(parent: psutil.Process, module: str) -> list[psutil.Process]:
    found = []
    for one in parent.children(recursive=True):
        try:
            if module in " ".join(one.cmdline()):
                found.append(one)
        except psutil.NoSuchProcess:
            continue
    return found


def started(home: Path, *arguments: str) -> subprocess.Popen[str]:
    paths = {"GRPO_STUDIO_HOME": str(home), "GRPO_STUDIO_CACHE": str(home / "cache"), "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-m", "grpo_studio", *arguments]
    return subprocess.Popen(
        line, cwd=ROOT, env={**os.environ, **paths}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def left_behind(home: Path) -> list[Path]:
    return [*home.glob(f"{PREFIX}*"), *(home / "runs").glob("*")]


def test_a_backend_that_is_killed_is_a_data_point_of_the_command(tiny_model: Path, settings: Settings) -> None:
    home = settings.home
    arguments = command("--backends=full,liger", "--no-forecast", "--json", model=tiny_model)
    with started(home, *arguments) as child:
        me, seen = psutil.Process(child.pid), set[int]()

        def second() -> bool:
            seen.update(one.pid for one in children_of(me, "probe_backend_child"))
            return len(seen) == 2

        wait_for(second, limit=240, what="the second backend")
        children_of(me, "probe_backend_child")[0].kill()
        out, told = child.communicate(timeout=240)
    assert child.returncode == 0, told
    document = ProbeDocument.model_validate_json(out)
    full, liger = document.backends
    assert (full.error, document.reference_backend) == (None, "full")
    assert full.peak_bytes is not None
    assert full.peak_bytes > 0
    assert liger.out_of_memory
    assert "signal 9" in (liger.error or "")
    assert document.config["model"]["id"] == str(tiny_model)
    assert (document.completions, document.micro_batch, document.dtype) == (32, 16, "float32")
    assert [one.id for one in probe_results(settings)] == [document.id]
    assert read_probe(settings, document.id) == document
    assert left_behind(home) == []


@pytest.mark.slow
def test_the_three_backends_from_the_command_line(tiny_model: Path, tmp_path: Path) -> None:
    result = studio(*command("--backends=full,trl,liger", "--json", model=tiny_model), home=tmp_path, timeout=600)
    assert result.returncode == 0, result.stderr
    found = as_json(result)
    full, *others = found["backends"]
    assert [one["backend"] for one in found["backends"]] == ["full", "trl", "liger"]
    for one in others:
        assert one["loss"] == pytest.approx(full["loss"], abs=1e-5)
        assert one["grad_relative_difference"] < 1e-5
    for one in found["backends"]:
        assert one["peak_bytes"] == max(one["peak_by_phase"].values())
        assert one["forecast_bytes"] == pytest.approx(one["peak_bytes"], rel=0.1)


@pytest.mark.slow
def test_a_line_of_a_sweep_that_is_killed_ends_alone(tiny_model: Path, settings: Settings) -> None:
    sweep = ("--backends=full,liger", "--sweep=completions", "--to=3", "--no-forecast", "--json")
    with started(settings.home, *command(*sweep, model=tiny_model)) as child:
        me = psutil.Process(child.pid)
        wait_for(lambda: bool(children_of(me, "probe_sweep_child")), limit=240, what="the sweep")
        children_of(me, "probe_sweep_child")[0].kill()
        out, told = child.communicate(timeout=240)
    assert child.returncode == 0, told
    document = ProbeDocument.model_validate_json(out)
    assert document.sweep is not None
    full, liger = document.sweep.lines
    assert (full.ended_by, full.points, full.largest, full.end_x) == ("memory", [], None, None)
    assert "signal 9" in (full.reason or "")
    assert (liger.ended_by, [point.x for point in liger.points], liger.largest) == ("asked", [1, 2, 3], 3)
    assert "the sweep over completions will take about" in told
    assert left_behind(settings.home) == []


@pytest.mark.slow
def test_a_sweep_that_would_take_too_long_says_how_long_first(tiny_model: Path, settings: Settings) -> None:
    sweep = ("--sweep=completions", "--to=1000000", "--minutes=1", "--backends=full", "--no-forecast", "--json")
    result = studio(*command(*sweep, model=tiny_model), home=settings.home, timeout=600)
    assert result.returncode == 1
    assert "error: the sweep over completions will take about" in result.stderr
    assert "longer than --minutes=1 allows; give --to" in result.stderr
    document = ProbeDocument.model_validate(as_json(result))
    assert document.sweep is None
    assert any(note.startswith("no sweep:") for note in document.notes)
    assert document.backends[0].peak_bytes is not None


@pytest.mark.slow
def test_an_interrupted_one_takes_its_children_and_its_folder_along(tiny_model: Path, tmp_path: Path) -> None:
    with started(tmp_path, *command("--json", model=tiny_model)) as child:
        me = psutil.Process(child.pid)
        wait_for(lambda: bool(children_of(me, "probe_backend_child")), limit=240, what="a backend")
        family = me.children(recursive=True)
        child.send_signal(signal.SIGTERM)
        out, told = child.communicate(timeout=60)
    assert (child.returncode, out) == (1, "")
    assert "error: the probe was interrupted; nothing of it is left, start it again" in told
    wait_for(lambda: not any(one.is_running() for one in family), what="the end of the children")
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        (["--backends=fuul"], 2, "--backends: fuul is not known; give some of full,trl,liger, each once"),
        (["--sweep=tokens", "--to=0"], 2, "--to is 0; give 1 to 1,048,576 tokens"),
        (["--sweep=completions", "--to=-4"], 2, "--to is -4; give 1 to 1,048,576 completions"),
        (["--sweep=completions", "--minutes=0"], 2, "--minutes is 0; give more than 0, and at most 10,080"),
        (
            ["--sweep=completions", "--dtypes=int8"],
            2,
            "--dtypes: int8 is not known; give some of float32,bfloat16, each once",
        ),
        (["--to=8"], 2, "--to goes with a sweep; add --sweep=completions or --sweep=tokens, or leave it out"),
        (["--sweep=rows"], 2, "argument --sweep: invalid choice: 'rows' (choose from 'completions', 'tokens')"),
        (["--set", "memory.loss_backends=full"], 2, "memory.loss_backends"),
        (["--set", "algorithm.group_size=0"], 1, "algorithm.group_size"),
    ],
    ids=["backend", "zero", "negative", "no-time", "format", "no-sweep", "axis", "key", "value"],
)
def test_what_cannot_be_probed_is_refused_before_anything_is_loaded(
    settings: Settings, tiny_model: Path, capsys: pytest.CaptureFixture[str], more: list[str], code: int, told: str
) -> None:
    assert run(command(*more, model=tiny_model)) == code
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith(f"error: {told}")
    assert error.count("\n") == 1
    assert left_behind(settings.home) == []


def test_on_a_gpu_that_a_run_holds_it_is_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, other = JobQueue(settings.queue_path), settings.runs_dir / "20260101-000000-other-abcd"
    queue.add(other)
    queue.take(other, ("0",))
    claimed = Claim(("0",), (), ("0",))
    monkeypatch.setattr(probe_devices, "shortage", lambda config: None)
    monkeypatch.setattr(probe_devices, "claim", lambda config, held=(): None if held else claimed)
    with pytest.raises(TrainingError, match=r"a run holds the GPU .*20260101-000000-other-abcd.*--anyway"):
        probe_claim(RunConfig(), settings, False, [])
    notes: list[str] = []
    assert probe_claim(RunConfig(), settings, True, notes).trainer == ("0",)
    monkeypatch.setattr(probe_devices, "claim", claim)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert probe_claim(RunConfig(), settings, False, notes).trainer == ()
    assert [note for note in notes if "all times are too long" in note] == notes
    assert len(notes) == 2
