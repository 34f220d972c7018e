"""What the engine's parts can do together: each refusal with its reason, and what is allowed beside it."""

from __future__ import annotations

from typing import Any

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.lora_targets import target_names
from grpo_studio.rules import inspect


def problems(data: dict[str, Any]) -> dict[str, str]:
    return {problem.field: str(problem) for problem in inspect(data).problems}


def with_algorithm(backend: str = "liger", **algorithm: Any) -> dict[str, Any]:
    return {"algorithm": algorithm, "memory": {"loss_backend": backend}}


NOT_FOR_LIGER = [
    {"extra": {"top_entropy_quantile": 0.2}},
    {"extra": {"entropy_coef": 0.01}},
    {"extra": {"use_adaptive_entropy": True}},
    {"extra": {"off_policy_mask_threshold": 0.5}},
    {"importance_sampling_level": "sequence", "loss_type": "cispo"},
    {"importance_sampling_level": "sequence", "loss_type": "sapo"},
    {"importance_sampling_level": "sequence", "loss_type": "vespo"},
    {"loss_type": "luspo"},
    {"loss_type": "luspo", "importance_sampling_level": "sequence", "beta": 0.04},
]


@pytest.mark.parametrize("algorithm", NOT_FOR_LIGER)
def test_what_liger_cannot_do_is_refused_with_a_way_out(algorithm: dict[str, Any]) -> None:
    assert "use trl or full" in problems(with_algorithm(**algorithm))["memory.loss_backend"]


@pytest.mark.parametrize("backend", ["trl", "full"])
@pytest.mark.parametrize("algorithm", NOT_FOR_LIGER)
def test_the_other_backends_do_it(algorithm: dict[str, Any], backend: str) -> None:
    assert problems(with_algorithm(backend, **algorithm)) == {}


@pytest.mark.parametrize("name", ["top_entropy_quantile", "entropy_coef", "off_policy_mask_threshold"])
def test_a_value_that_asks_for_nothing_is_no_problem(name: str) -> None:
    neutral = {"top_entropy_quantile": 1.0, "entropy_coef": 0.0, "off_policy_mask_threshold": None}[name]
    assert problems(with_algorithm(extra={name: neutral})) == {}


def test_luspo_by_liger_is_right_per_sequence_and_without_a_vllm_ratio() -> None:
    luspo = with_algorithm(loss_type="luspo", importance_sampling_level="sequence")
    assert problems(luspo) == {}
    vllm = luspo | {"rollout": {"engine": "vllm_colocate"}}
    assert "rollout.engine is vllm_colocate" in problems(vllm)["memory.loss_backend"]
    vllm["rollout"]["importance_sampling_correction"] = False
    assert problems(vllm) == {}


def test_chunks_are_liger_s() -> None:
    assert "memory.chunk_size" in problems({"memory": {"loss_backend": "trl", "chunk_size": 4}})
    assert problems({"memory": {"chunk_size": 4}}) == {}


def test_chunks_hold_two_thousand_tokens_unless_set() -> None:
    config = RunConfig()
    assert [config.effective_chunk_size(tokens) for tokens in (12, 1024, 2048, 9000)] == [170, 2, 1, 1]
    assert RunConfig.model_validate({"memory": {"chunk_size": 3}}).effective_chunk_size(12) == 3


@pytest.mark.parametrize(
    ("algorithm", "reason"),
    [
        ({"beta": 0.04}, "KL term"),
        ({"extra": {"entropy_coef": 0.01}}, "entropy bonus"),
        ({"extra": {"use_adaptive_entropy": True}}, "entropy bonus"),
        ({"extra": {"top_entropy_quantile": 0.5}}, "entropy threshold"),
    ],
)
def test_dead_groups_are_skipped_only_where_that_changes_nothing(algorithm: dict[str, Any], reason: str) -> None:
    data = with_algorithm("trl", **algorithm)
    assert RunConfig().effective_skip_dead_groups()
    assert not RunConfig.model_validate(data).effective_skip_dead_groups()
    data["memory"]["skip_dead_groups"] = True
    assert reason in problems(data)["memory.skip_dead_groups"]
    data["memory"]["skip_dead_groups"] = False
    assert problems(data) == {}


@pytest.mark.parametrize("targets", ["lm_head", "q_proj, lm_head", "model.lm_head", "embed_out"])
def test_an_adapter_on_the_output_layer_is_refused(targets: str) -> None:
    assert "output layer" in problems({"memory": {"adapter": "lora", "lora_targets": targets}})["memory.lora_targets"]


def test_targets_are_names_by_commas() -> None:
    assert target_names("all-linear") is None
    assert target_names(" q_proj, v_proj ,q_proj,") == ["q_proj", "v_proj"]
    assert (
        "no module is named" in problems({"memory": {"adapter": "lora", "lora_targets": " , "}})["memory.lora_targets"]
    )


def test_the_sampler_s_ratio_is_one_of_tokens_for_vespo() -> None:
    vespo = RunConfig.model_validate({"algorithm": {"loss_type": "vespo"}, "rollout": {"engine": "vllm_colocate"}})
    assert vespo.effective_importance_sampling_mode() == "token_truncate"
    assert RunConfig().effective_importance_sampling_mode() == "sequence_mask"


@pytest.mark.parametrize(("processes", "micro_batch", "accumulation"), [(1, 16, 2), (2, 16, 1), (4, 8, 1), (8, 4, 1)])
def test_batch_sizes_are_shares_of_the_processes(processes: int, micro_batch: int, accumulation: int) -> None:
    config = RunConfig.model_validate(
        {"algorithm": {"prompts_per_step": 4, "group_size": 8}, "scale": {"processes": processes, "strategy": "ddp"}}
    )
    assert (config.effective_micro_batch(), config.gradient_accumulation()) == (micro_batch, accumulation)


def test_a_micro_batch_that_does_not_divide_a_process_s_share() -> None:
    data = {
        "algorithm": {"prompts_per_step": 4, "group_size": 8},
        "scale": {"processes": 2, "strategy": "ddp"},
        "memory": {"micro_batch": 32},
    }
    found = problems(data)["memory.micro_batch"]
    assert "each of 2 processes" in found
    assert "use 16" in found
