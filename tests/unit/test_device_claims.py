"""Which GPUs a run gets while others run: asked of an nvidia-smi that is a script of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.devices import SERVER_GPUS, VISIBLE, claim, shortage, worker_environment

SERVER = {"engine": "vllm_server"}


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with four GPUs; index i has uuid GPU-i-abc."""
    rows = "\\n".join(f"{index}, GPU-{index}-abc, NVIDIA H200, 81920, 0" for index in range(4))
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nprintf '{rows}\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in (VISIBLE, SERVER_GPUS):
        monkeypatch.delenv(name, raising=False)
    return program


def config(processes: int = 1, **rollout: object) -> RunConfig:
    return RunConfig.model_validate({"scale": {"processes": processes}, "rollout": rollout})


@pytest.mark.parametrize(
    ("processes", "rollout", "busy", "trainer", "server"),
    [
        (1, {}, "", "0", ""),
        (1, {}, "0", "1", ""),
        (1, {}, "0,1,3", "2", ""),
        (2, {}, "0,2", "1,3", ""),
        (4, {}, "", "0,1,2,3", ""),
        (1, SERVER, "0,1", "2", "3"),
        (1, SERVER | {"tensor_parallel": 2}, "1", "0", "2,3"),
        (1, SERVER | {"server_devices": "3"}, "0", "1", "3"),
        (2, SERVER | {"server_devices": "GPU-0-abc"}, "2", "1,3", "GPU-0-abc"),
        (1, {"engine": "vllm_colocate"}, "0", "1", ""),
    ],
)
def test_a_run_gets_the_first_devices_that_no_other_run_holds(
    cards: Path, processes: int, rollout: dict[str, object], busy: str, trainer: str, server: str
) -> None:
    run = config(processes, **rollout)
    got = claim(run, busy.split(",") if busy else ())
    assert got is not None
    assert (",".join(got.trainer), ",".join(got.server)) == (trainer, server)
    assert not set(got.devices) & set(busy.split(","))
    environment = worker_environment(run, got)
    assert environment[VISIBLE] == trainer
    assert environment.get(SERVER_GPUS, "") == server


@pytest.mark.parametrize(
    ("processes", "rollout", "busy"),
    [
        (1, {}, "0,1,2,3"),
        (2, {}, "0,1,2"),
        (4, {}, "3"),
        (1, SERVER, "0,1,2"),
        (1, SERVER | {"server_devices": "3"}, "3"),
        (1, SERVER | {"server_devices": "GPU-3-abc"}, "3"),
        (3, SERVER | {"server_devices": "3"}, "0"),
    ],
)
def test_a_run_waits_for_devices_that_others_hold(
    cards: Path, processes: int, rollout: dict[str, object], busy: str
) -> None:
    run = config(processes, **rollout)
    assert claim(run, busy.split(",")) is None
    assert shortage(run) is None


@pytest.mark.parametrize(
    ("processes", "rollout", "words"),
    [
        (5, {}, "5 GPUs"),
        (4, SERVER, "5 GPUs, 1 of them for its vLLM server"),
        (1, SERVER | {"server_devices": "7"}, "server_devices names 7"),
    ],
)
def test_what_never_fits_is_told(cards: Path, processes: int, rollout: dict[str, object], words: str) -> None:
    run = config(processes, **rollout)
    assert claim(run) is None
    assert words in (shortage(run) or "")


def test_hidden_gpus_are_not_given_away(cards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE, "GPU-3,1")
    first = claim(config())
    assert first is not None
    assert (first.trainer, first.devices) == (("GPU-3",), ("3",))
    second = claim(config(), first.devices)
    assert second is not None
    assert second.trainer == ("1",)
    assert claim(config(), ["3", "1"]) is None
    assert shortage(config(2)) is None
    assert "shows GPU-3, 1" in (shortage(config(3)) or "")


def test_on_a_cpu_runs_go_one_at_a_time(cards: Path) -> None:
    cards.unlink()
    got = claim(config(2))
    assert got is not None
    assert got.devices == ("cpu",)
    assert claim(config(), got.devices) is None


def test_gpus_that_cannot_be_seen_just_now_make_no_run_one_on_the_cpu(cards: Path) -> None:
    cards.write_text("#!/bin/sh\nexit 9\n")
    assert claim(config(), ["0"]) is None
