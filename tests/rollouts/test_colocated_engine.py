"""A real vLLM engine in the trainer's process: weights cross over whole, and the canary sees when they do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from studio_process import ROOT

from grpo_studio.devices import CPU_ENVIRONMENT

pytestmark = pytest.mark.timeout(300)
METRIC = "policy/canary_difference"


@pytest.fixture(scope="module")
def shared_memory() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}


@pytest.fixture(scope="module")
def seen(engine_model: Path, shared_memory: set[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    script = Path(__file__).with_name("colocated_engine.py")
    result = subprocess.run(
        [sys.executable, str(script), str(engine_model), str(tmp_path_factory.mktemp("run"))],
        env={**os.environ, **CPU_ENVIRONMENT, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    document: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    print(json.dumps(document, indent=1))
    return document


def test_the_engine_samples_what_the_trainer_would(seen: dict[str, Any]) -> None:
    assert len(seen["sampler_differences"]) == 2
    assert max(seen["sampler_differences"]) < 1e-3


def test_trained_weights_reach_the_engine_whole(seen: dict[str, Any]) -> None:
    assert seen["engine_moved"] > 1e-3
    assert seen["engine_differs"] < 1e-6


def test_after_a_true_sync_the_canary_is_silent(seen: dict[str, Any]) -> None:
    assert seen["trained"][METRIC] < 1e-3
    assert seen["synced"][METRIC] < 1e-3
    assert seen["events"] == ["canary_drift"]


def test_a_sync_that_brings_nothing_across_passes_the_bound(seen: dict[str, Any]) -> None:
    assert seen["stale"][METRIC] > 0.01
    assert seen["stale_events"] == ["canary_drift"]


def test_a_drift_can_stop_the_run(seen: dict[str, Any]) -> None:
    assert seen["refusal"].startswith("engine and trainer differ by ")
    assert "rollout.canary_bound is 0.01" in seen["refusal"]


def test_syncs_are_timed(seen: dict[str, Any]) -> None:
    assert 0 < seen["sync_seconds"] < 60


def test_the_port_to_meet_at_is_a_free_one(seen: dict[str, Any]) -> None:
    assert seen["port"] != 29500


def test_no_shared_memory_is_left(seen: dict[str, Any], shared_memory: set[str]) -> None:
    assert {path.name for path in Path("/dev/shm").iterdir()} <= shared_memory
