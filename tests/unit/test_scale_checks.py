"""Rules about several processes: each refusal names the setting, what was found and what would work."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.scale_checks import device_problems, scale_problems

Raw = dict[str, dict[str, Any]]


def found(raw: Raw) -> dict[str, str]:
    return {problem.field: str(problem) for problem in scale_problems(RunConfig.model_validate(raw))}


def found_on(kind: str, gpus: int, raw: Raw) -> dict[str, str]:
    return {problem.field: str(problem) for problem in device_problems(RunConfig.model_validate(raw), kind, gpus)}


@pytest.fixture
def deepspeed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the package were installed, or not: only that it can be found is asked."""
    spec = importlib.util.find_spec("json") if request.param else None
    monkeypatch.setattr("grpo_studio.scale_checks.find_spec", lambda name: spec)


@pytest.mark.parametrize(
    "scale",
    [
        {},
        *({"processes": 2, "strategy": strategy} for strategy in ("ddp", "fsdp", "zero2")),
        {"machines": 2, "strategy": "ddp", "main_process_ip": "10.0.0.1", "machine_rank": 1},
    ],
)
def test_what_fits_together_is_accepted(scale: dict[str, Any]) -> None:
    assert found({"scale": scale}) == {}


@pytest.mark.parametrize("scale", [{"processes": 2}, {"machines": 2, "main_process_ip": "a"}])
def test_several_processes_need_a_strategy(scale: dict[str, Any]) -> None:
    assert found({"scale": scale}) == {
        "scale.strategy": "scale.strategy: 2 processes need a way to share the model (found 'none'); use ddp"
    }


@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "zero2", "zero3"])
def test_one_process_needs_none(strategy: str) -> None:
    assert "use none, or 2 or more processes" in found({"scale": {"strategy": strategy}})["scale.strategy"]


@pytest.mark.parametrize(
    ("prompts", "group", "processes", "nearest"),
    [(3, 5, 2, 2), (1, 5, 2, 2), (4, 8, 3, 3), (5, 8, 3, 6), (7, 6, 4, 6), (1, 7, 8, 8)],
)
def test_completions_that_cannot_be_dealt_out_get_the_nearest_number_of_prompts(
    prompts: int, group: int, processes: int, nearest: int
) -> None:
    raw: Raw = {
        "algorithm": {"prompts_per_step": prompts, "group_size": group},
        "scale": {"processes": processes, "strategy": "ddp"},
    }
    message = found(raw)["algorithm.prompts_per_step"]
    assert f"the {prompts * group} completions of a step" in message
    assert f"use {nearest}," in message
    raw["algorithm"]["prompts_per_step"] = nearest
    assert found(raw) == {}


def test_a_group_may_lie_on_several_processes() -> None:
    assert (
        found({"algorithm": {"prompts_per_step": 1, "group_size": 8}, "scale": {"processes": 4, "strategy": "ddp"}})
        == {}
    )


@pytest.mark.parametrize(("rank", "machines", "fix"), [(1, 1, "use 0"), (2, 2, "use 0 to 1"), (9, 4, "use 0 to 3")])
def test_a_machine_rank_counts_from_0(rank: int, machines: int, fix: str) -> None:
    scale = {"machines": machines, "machine_rank": rank, "strategy": "ddp", "main_process_ip": "a"}
    message = found({"scale": scale})["scale.machine_rank"]
    assert f"{rank} is no rank of {machines} machine" in message
    assert fix in message


@pytest.mark.parametrize("address", [None, " "])
def test_several_machines_need_an_address(address: str | None) -> None:
    message = found({"scale": {"machines": 2, "strategy": "ddp", "main_process_ip": address}})["scale.main_process_ip"]
    assert repr(address) in message
    assert "address of machine 0" in message


@pytest.mark.parametrize("strategy", ["fsdp", "zero3"])
def test_weights_in_4_bits_are_not_split(strategy: str) -> None:
    scale = {"processes": 2, "strategy": strategy}
    message = found({"memory": {"adapter": "qlora"}, "scale": scale})["scale.strategy"]
    assert "bitsandbytes" in message
    assert "use ddp" in message
    assert found({"memory": {"adapter": "lora"}, "scale": scale}) == {}
    assert found({"memory": {"adapter": "qlora"}, "scale": {"processes": 2, "strategy": "ddp"}}) == {}


def test_liger_does_not_train_an_output_layer_that_zero3_holds() -> None:
    scale = {"processes": 2, "strategy": "zero3"}
    message = found({"memory": {"loss_backend": "liger"}, "scale": scale})["memory.loss_backend"]
    assert "would not be trained" in message
    assert "use trl" in message
    assert found({"memory": {"loss_backend": "trl"}, "scale": scale}) == {}
    assert found({"memory": {"loss_backend": "liger", "adapter": "lora"}, "scale": scale}) == {}


def test_several_problems_are_found_at_once() -> None:
    scale = {"processes": 3, "machines": 2, "machine_rank": 2}
    assert set(found({"scale": scale})) == {
        "algorithm.prompts_per_step", "scale.strategy", "scale.machine_rank", "scale.main_process_ip",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("strategy", "why"), [("fsdp", "quietly become DDP"), ("zero2", "needs GPUs"), ("zero3", "needs GPUs")]
)
def test_nothing_is_sharded_on_a_cpu(strategy: str, why: str) -> None:
    message = found_on("cpu", 0, {"scale": {"processes": 2, "strategy": strategy}})["scale.strategy"]
    assert why in message
    assert "use ddp" in message


def test_a_cpu_runs_ddp_with_any_number_of_processes() -> None:
    assert found_on("cpu", 0, {"scale": {"processes": 4, "strategy": "ddp"}}) == {}


@pytest.mark.parametrize(("gpus", "fix"), [(2, "use 2 or fewer"), (1, "use 1")])
def test_each_process_needs_a_gpu(gpus: int, fix: str) -> None:
    scale = {"processes": 4, "strategy": "ddp"}
    assert found_on("cuda", 4, {"scale": scale}) == {}
    message = found_on("cuda", gpus, {"scale": scale})["scale.processes"]
    assert message.endswith(f"4 processes need a GPU each, and this machine shows {gpus}; {fix}")


@pytest.mark.usefixtures("deepspeed")
@pytest.mark.parametrize("deepspeed", [False], indirect=True)
@pytest.mark.parametrize("strategy", ["zero2", "zero3"])
def test_zero_needs_deepspeed(strategy: str) -> None:
    message = found_on("cuda", 2, {"scale": {"processes": 2, "strategy": strategy}})["scale.strategy"]
    assert "deepspeed, which is not installed" in message
    assert "use fsdp" in message


@pytest.mark.usefixtures("deepspeed")
@pytest.mark.parametrize("deepspeed", [True], indirect=True)
@pytest.mark.parametrize("strategy", ["zero2", "zero3"])
def test_zero_with_deepspeed_and_gpus_is_accepted(strategy: str) -> None:
    assert found_on("cuda", 2, {"scale": {"processes": 2, "strategy": strategy}}) == {}


@pytest.mark.parametrize(
    ("rollout", "processes", "gpus", "field"),
    [
        ({}, 1, 2, None),
        ({"tensor_parallel": 2}, 2, 4, None),
        ({"server_devices": "2,3", "tensor_parallel": 2}, 2, 4, None),
        ({"server_url": "http://elsewhere:8000"}, 2, 2, None),
        ({}, 1, 1, "rollout.engine"),
        ({}, 2, 2, "rollout.engine"),
        ({"tensor_parallel": 2}, 1, 2, "rollout.engine"),
        ({"server_devices": "2,3"}, 1, 4, "rollout.server_devices"),
        ({"server_devices": ","}, 1, 4, "rollout.server_devices"),
    ],
)
def test_a_server_of_the_run_needs_gpus_that_do_not_train(
    rollout: dict[str, Any], processes: int, gpus: int, field: str | None
) -> None:
    raw = {"rollout": {"engine": "vllm_server", **rollout}, "scale": {"processes": processes, "strategy": "ddp"}}
    assert set(found_on("cuda", gpus, raw)) == ({field} if field else set())


def test_of_a_server_on_a_cpu_the_rules_of_the_engine_speak_alone() -> None:
    assert found_on("cpu", 0, {"rollout": {"engine": "vllm_server"}}) == {}
