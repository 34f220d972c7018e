"""The product's own path through vLLM: the quickstart with a real engine in the worker's process, and how it ends."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest
from live_runs import family
from studio_process import ROOT, as_json, studio, tiny_train, wait_for

from grpo_studio import supervisor
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader

pytestmark = pytest.mark.timeout(600)
COLOCATE = ("--set", "rollout.engine=vllm_colocate")


def left_behind() -> set[str]:
    """Names of shared memory, and of vLLM's files and sockets among the temporary ones."""
    temporary = Path(tempfile.gettempdir())
    sockets = {path.name for path in temporary.iterdir() if path.is_socket() or path.name.startswith("vllm")}
    return sockets | {path.name for path in Path("/dev/shm").iterdir()}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    before = left_behind()
    home = tmp_path_factory.mktemp("home")
    cache = os.environ.get("GRPO_STUDIO_CACHE") or str(home / "cache")
    result = studio(
        *("train", "--preset", "quickstart", *COLOCATE, "--set", "algorithm.steps=2", "--wait", "--json"),
        home=home, timeout=500, cwd=ROOT, GRPO_STUDIO_CACHE=cache,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    document = as_json(result)
    document["folder"] = RunFolder(home / "runs" / document["run"])
    document["left_behind"] = left_behind() - before
    return document


def test_the_quickstart_ends_finished(run: dict[str, Any]) -> None:
    assert (run["state"], run["step"], run["completions"]) == ("finished", 2, 64)


def test_engine_and_trainer_agree_and_that_is_recorded(run: dict[str, Any]) -> None:
    metrics = run["metrics"]
    assert 0 <= metrics["policy/sampler_difference"] < 0.05
    assert 0 <= metrics["policy/canary_difference"] < 0.05
    assert metrics["time/sync"] > 0
    assert metrics["time/rollout"] > 0


def test_nothing_drifted(run: dict[str, Any]) -> None:
    with RunReader(run["folder"].database) as reader:
        assert "canary_drift" not in {event.kind for event in reader.events()}


def test_nothing_is_left_of_it(run: dict[str, Any]) -> None:
    process = run["folder"].process()
    assert process is not None
    assert family(process.session) == []
    assert run["left_behind"] == set()


def test_a_run_killed_by_signal_9_leaves_nothing(tmp_path: Path, engine_model: Path) -> None:
    before = left_behind()
    started = tiny_train(engine_model, tmp_path, *COLOCATE, "--set", "algorithm.steps=100000")
    folder = RunFolder(tmp_path / "runs" / as_json(started)["run"])
    wait_for(lambda: supervisor.facts_of(folder).step >= 2, limit=180, what="step 2")
    process = folder.process()
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: supervisor.state_of(folder).state == "killed", limit=20, what="the state killed")
    wait_for(lambda: family(process.session) == [], limit=20, what="the end of the run's processes")
    assert left_behind() - before == set()
