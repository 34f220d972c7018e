"""Which GPUs there are and who gets which: asked of an nvidia-smi that is a script of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.devices import (
    CPU_ENVIRONMENT,
    SERVER_GPUS,
    current_device,
    server_devices,
    trainer_devices,
    visible_gpus,
    worker_environment,
    wrong_server_devices,
)

VISIBLE = "CUDA_VISIBLE_DEVICES"
SERVER = {"engine": "vllm_server"}


def config(processes: int = 1, **rollout: object) -> RunConfig:
    return RunConfig.model_validate({"scale": {"processes": processes}, "rollout": rollout})


class Machine:
    """A machine with as many GPUs as a test wants; index i has uuid GPU-i-abc and i GiB in use."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = folder / "nvidia-smi"
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("PATH", str(folder))
        for name in (VISIBLE, SERVER_GPUS):
            monkeypatch.delenv(name, raising=False)

    def has_gpus(self, count: int) -> None:
        rows = [f"{index}, GPU-{index}-abc, NVIDIA H{index}, 81920, {1024 * index}" for index in range(count)]
        self.says("\n".join(rows))

    def says(self, text: str, code: int = 0) -> None:
        self._path.write_text(f"#!/bin/sh\nprintf '%s\\n' '{text}'\nexit {code}\n")
        self._path.chmod(0o755)

    def shows(self, names: str) -> None:
        self._monkeypatch.setenv(VISIBLE, names)

    def sets(self, name: str, value: str) -> None:
        self._monkeypatch.setenv(name, value)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_without_nvidia_smi_there_is_the_cpu(machine: Machine) -> None:
    machine.shows("0,1")
    assert visible_gpus() == []
    assert current_device().kind == "cpu"
    assert worker_environment(config(2)) == CPU_ENVIRONMENT


@pytest.mark.parametrize(("text", "code"), [("No devices were found", 6), ("0, GPU-0, odd", 0), ("", 0)])
def test_an_nvidia_smi_that_finds_nothing_means_the_cpu(machine: Machine, text: str, code: int) -> None:
    machine.says(text, code)
    assert visible_gpus() == []
    assert current_device().kind == "cpu"


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ("3,1", ["3", "1"]),
        (" 2 , 0", ["2", "0"]),
        ("", []),
        ("-1", []),
        ("1,-1,0", ["1"]),
        ("1,7,0", ["1"]),
        ("GPU-2-abc", ["GPU-2-abc"]),
        ("GPU-2", ["GPU-2"]),
        ("MIG-1234,MIG-5678", ["MIG-1234", "MIG-5678"]),
    ],
)
def test_the_variable_that_hides_gpus_is_read_as_cuda_reads_it(machine: Machine, asked: str, seen: list[str]) -> None:
    machine.has_gpus(4)
    assert visible_gpus() == ["0", "1", "2", "3"]
    machine.shows(asked)
    assert visible_gpus() == seen
    assert current_device().kind == ("cuda" if seen else "cpu")


def test_the_device_that_is_shown_is_the_one_that_a_run_gets(machine: Machine) -> None:
    machine.has_gpus(4)
    assert current_device().name == "NVIDIA H0"
    machine.shows("2,3")
    device = current_device()
    assert (device.name, device.total, device.used) == ("NVIDIA H2", 80 << 30, 2 << 30)


@pytest.mark.parametrize(("processes", "shown"), [(1, "0"), (2, "0,1"), (4, "0,1,2,3")])
def test_a_worker_sees_a_gpu_for_each_of_its_processes(machine: Machine, processes: int, shown: str) -> None:
    machine.has_gpus(4)
    assert worker_environment(config(processes)) == {
        VISIBLE: shown,
        "VLLM_NO_USAGE_STATS": "1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def test_a_worker_gets_the_first_of_the_gpus_that_may_be_seen_in_the_order_of_who_set_them(machine: Machine) -> None:
    machine.has_gpus(4)
    machine.shows("3,1,0")
    assert worker_environment(config(2)) == {VISIBLE: "3,1", "VLLM_NO_USAGE_STATS": "1"}


def test_without_a_configuration_one_gpu_is_shown(machine: Machine) -> None:
    machine.has_gpus(2)
    assert worker_environment()[VISIBLE] == "0"


def test_hidden_gpus_mean_a_worker_on_the_cpu(machine: Machine) -> None:
    machine.has_gpus(2)
    machine.shows("")
    assert worker_environment(config()) == CPU_ENVIRONMENT


@pytest.mark.parametrize(
    ("processes", "rollout", "trainer", "server"),
    [
        (1, SERVER, "0", "1"),
        (2, SERVER | {"tensor_parallel": 2}, "0,1", "2,3"),
        (3, SERVER | {"tensor_parallel": 2}, "0,1,2", "3"),
        (4, SERVER, "0,1,2,3", ""),
        (1, SERVER | {"server_devices": "3"}, "0", "3"),
        (2, SERVER | {"server_devices": " 0, 1", "tensor_parallel": 2}, "2,3", "0,1"),
        (1, SERVER | {"server_url": "http://localhost:8000"}, "0", ""),
        (1, {"engine": "vllm_colocate"}, "0", ""),
        (1, {"server_devices": "0"}, "0", ""),
    ],
)
def test_a_server_gets_the_gpus_that_are_set_or_those_after_the_trainers(
    machine: Machine, processes: int, rollout: dict[str, object], trainer: str, server: str
) -> None:
    machine.has_gpus(4)
    run = config(processes, **rollout)
    assert ",".join(trainer_devices(run)) == trainer
    assert ",".join(server_devices(run)) == server
    environment = worker_environment(run)
    assert environment[VISIBLE] == trainer
    assert environment.get(SERVER_GPUS, "") == server


def test_a_worker_that_sees_only_its_own_gpus_knows_those_of_its_server(machine: Machine) -> None:
    machine.has_gpus(4)
    run = config(2, **SERVER)
    for name, value in worker_environment(run).items():
        machine.sets(name, value)
    assert visible_gpus() == ["0", "1"]
    assert server_devices(run) == ["2"]
    assert server_devices(config(2)) == []


@pytest.mark.parametrize(
    ("visible", "names", "wrong"),
    [
        (None, "2,3", []),
        (None, "GPU-3-abc", []),
        (None, "9", ["9"]),
        (None, "foo", ["foo"]),
        (None, "1,1", ["1"]),
        (None, "1,GPU-1-abc", ["GPU-1-abc"]),
        ("2,3", "0", ["0"]),
        ("2,3", "3", []),
    ],
)
def test_a_server_gets_gpus_that_may_be_seen_each_once(
    machine: Machine, visible: str | None, names: str, wrong: list[str]
) -> None:
    machine.has_gpus(4)
    if visible is not None:
        machine.shows(visible)
    assert wrong_server_devices(config(engine="vllm_server", server_devices=names)) == wrong


def test_trainer_and_server_never_share_a_gpu_by_two_of_its_names(machine: Machine) -> None:
    machine.has_gpus(4)
    assert trainer_devices(config(engine="vllm_server", server_devices="GPU-0-abc")) == ["1"]


def test_a_card_that_shares_the_machine_s_memory_is_a_gpu_too(machine: Machine) -> None:
    machine.says("0, GPU-0-abc, NVIDIA GB10, [N/A], [N/A]")
    assert current_device().kind == "cuda"
