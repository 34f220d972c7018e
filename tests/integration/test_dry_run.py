"""`train --dry-run` really runs an iteration, tells what the whole would take, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from studio_process import ROOT, as_json, studio, tiny_train, wait_for

from grpo_studio import dry_run as dry_run_module
from grpo_studio.config import RunConfig
from grpo_studio.devices import Claim, claim
from grpo_studio.dry_run import PREFIX, dry_run
from grpo_studio.errors import TrainingError
from grpo_studio.job_queue import JobQueue
from grpo_studio.settings import Settings
from grpo_studio.temporary_folder import temporary_folder


def test_a_word_of_the_dry_run_alone_starts_no_run(tmp_path: Path) -> None:
    result = studio("train", "--preset", "quickstart", "--anyway", home=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "error: --anyway goes with --dry-run alone; add that, or leave it out\n"
    assert left_behind(tmp_path) == []


def left_behind(home: Path) -> list[Path]:
    return [*home.glob(f"{PREFIX}*"), *(home / "runs").glob("*")]


@pytest.mark.slow
def test_it_tells_time_tokens_cost_and_other_cards(tiny_model: Path, tmp_path: Path) -> None:
    more = ("--set", "limits.price_per_hour=2", "--set", "algorithm.steps=1000", "--set", "evaluation.every=100")
    result = tiny_train(tiny_model, tmp_path, "--dry-run", *more)
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = as_json(result)["dry_run"]
    measured, whole, at_most = found["measured"], found["whole"], found["at_most"]
    assert {"rollout", "score", "loss", "optimizer"} <= set(measured["step"])
    assert all(measured["peaks"][phase] > 0 for phase in ("rollout", "loss", "save"))
    assert measured["evaluate"] > 0
    assert measured["save"] > 0
    assert whole["steps"] == pytest.approx(1000 * measured["step_seconds"])
    assert (whole["evaluation_count"], whole["checkpoint_count"]) == (11, 1)
    assert whole["tokens"] == 1000 * measured["tokens"]
    assert whole["cost"] == pytest.approx(2 * whole["seconds"] / 3600)
    assert at_most["seconds"] >= whole["seconds"]
    assert found["price"] == {"per_hour": 2.0, "source": "limits.price_per_hour"}
    assert {card["card"] for card in found["cards"]} >= {"T4", "A100 80GB", "H100 SXM"}
    assert found["rough"] is True or found["device"].startswith("NVIDIA")
    assert left_behind(tmp_path) == []


@pytest.mark.slow
def test_an_iteration_that_fails_is_told_with_its_reason(tiny_model: Path, tmp_path: Path) -> None:
    rewards = tmp_path / "rewards"
    rewards.mkdir()
    (rewards / "never.py").write_text(
        "from grpo_studio.verifiers import verifier\n\n\n"
        "@verifier(examples=[('a', {}, None)])\n"
        "def never(completion: str) -> float | None:\n    return None\n"
    )
    never = ("--set", "rewards=[{verifier: never}]", "--json")
    result = studio(
        "train", "--preset", "quickstart", "--dry-run", "--set", f"model.id={tiny_model}", "--set",
        "dataset.held_out=8", *never, home=tmp_path,
    )  # fmt: skip
    assert result.returncode == 1
    assert result.stdout == ""
    assert "error: the dry run ended as paused: before training, on the held-out rows" in result.stderr
    assert left_behind(tmp_path) == []


@pytest.mark.slow
def test_an_interrupted_one_takes_its_worker_and_its_folder_along(tiny_model: Path, tmp_path: Path) -> None:
    paths = {"GRPO_STUDIO_HOME": str(tmp_path), "GRPO_STUDIO_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "grpo_studio", "train", "--dry-run", "--preset", "quickstart",
               "--set", f"model.id={tiny_model}"]  # fmt: skip
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **paths}, stderr=subprocess.PIPE, text=True) as child:
        me = psutil.Process(child.pid)
        wait_for(lambda: any("grpo_studio.worker" in " ".join(one.cmdline()) for one in me.children()), what="a worker")
        family = me.children(recursive=True)
        child.send_signal(signal.SIGTERM)
        _, told = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "the dry run was interrupted" in told
    wait_for(lambda: not any(one.is_running() for one in family), what="the end of the worker")
    assert left_behind(tmp_path) == []


@pytest.fixture
def busy(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A home folder whose queue says that a run holds GPU 0."""
    queue = JobQueue(settings.queue_path)
    queue.add(settings.runs_dir / "20260101-000000-other-abcd")
    queue.take(settings.runs_dir / "20260101-000000-other-abcd", ("0",))
    claimed = Claim(("0",), (), ("0",))
    monkeypatch.setattr(dry_run_module, "shortage", lambda config: None)
    monkeypatch.setattr(dry_run_module, "claim", lambda config, held=(): None if held else claimed)
    return settings


def test_on_gpus_that_a_run_holds_it_is_refused(busy: Settings, tiny_model: Path) -> None:
    config = RunConfig.model_validate({"model": {"id": str(tiny_model)}})
    with pytest.raises(TrainingError, match=r"a run holds the devices .*20260101-000000-other-abcd.*--anyway"):
        dry_run(config, busy)
    assert left_behind(busy.home) == []


def test_devices_are_shared_where_that_is_asked_for_or_only_slow(
    busy: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    assert dry_run_module._claimed(RunConfig(), busy, True, notes).trainer == ("0",)
    monkeypatch.setattr(dry_run_module, "claim", claim)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert dry_run_module._claimed(RunConfig(), busy, False, notes).trainer == ()
    assert len(notes) == 2
    assert all("all times are too long" in note for note in notes)


def test_what_a_killed_one_left_is_cleared_and_what_a_living_one_uses_is_not(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    dead, alive = tmp_path / f"{PREFIX}{child.pid}-x", tmp_path / f"{PREFIX}{os.getpid()}-y"
    for folder in (dead, alive):
        folder.mkdir()
    (tmp_path / f"{PREFIX}notes.txt").write_text("a person's own")
    with temporary_folder(tmp_path, PREFIX) as used:
        assert used.is_dir()
        assert not dead.exists()
        assert alive.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([alive.name, f"{PREFIX}notes.txt"])
