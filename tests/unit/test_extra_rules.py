"""Values of `algorithm.extra` of the right type that cannot work, each with a way out; and module names from headers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.config_files import with_overrides
from grpo_studio.engine_rules import idle_settings
from grpo_studio.extra_rules import extra_rules
from grpo_studio.module_names import linear_module_names


def found(extra: dict[str, Any], **sections: Any) -> dict[str, str]:
    config = RunConfig.model_validate({"algorithm": {"extra": extra, **sections.pop("algorithm", {})}, **sections})
    return {problem.field.removeprefix("algorithm.extra."): str(problem) for problem in extra_rules(config)}


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"multi_objective_aggregation": "foo"}, "sum_then_normalize or normalize_then_sum"),
        ({"top_entropy_quantile": 5.0}, "from 0 to 1"),
        ({"top_entropy_quantile": -1}, "from 0 to 1"),
        ({"sync_ref_model": True}, "algorithm.beta is 0"),
        ({"vllm_enable_sleep_mode": True}, "rollout.engine is transformers"),
        ({"log_completions_hub_repo": "a/b"}, "log_completions: true"),
    ],
)
def test_it_is_refused_before_the_start(extra: dict[str, Any], words: str) -> None:
    [message] = found(extra).values()
    assert words in message


def test_a_reference_to_sync_needs_one_of_its_own() -> None:
    assert found({"sync_ref_model": True}, algorithm={"beta": 0.1}) == {}
    assert (
        "adapter lora"
        in found({"sync_ref_model": True}, algorithm={"beta": 0.1}, memory={"adapter": "lora"})["sync_ref_model"]
    )


def test_the_lower_bound_of_the_sampler_s_ratio_is_below_the_upper() -> None:
    vllm = {"rollout": {"engine": "vllm_colocate"}}
    assert found({"vllm_importance_sampling_clip_min": 0.1}, **vllm) == {}
    assert (
        "use less than 3"
        in found({"vllm_importance_sampling_clip_min": 4}, **vllm)["vllm_importance_sampling_clip_min"]
    )


def test_numbers_with_an_exponent_are_numbers() -> None:
    raw = with_overrides(
        {}, ["algorithm.extra={entropy_coef: 1e-3, entropy_target: -2E+1}", "algorithm.extra.weight_decay=1e-2"]
    )
    assert raw["algorithm"]["extra"] == {"entropy_coef": 0.001, "entropy_target": -20.0, "weight_decay": 0.01}
    assert with_overrides({}, ["rewards=[{verifier: a, params: {p: '1e-3', q: e5, r: 1e}}]"])["rewards"][0]["params"] == {
        "p": "1e-3", "q": "e5", "r": "1e",
    }  # fmt: skip


def test_what_has_no_effect_is_told() -> None:
    config = RunConfig.model_validate(
        {"memory": {"lora_rank": 4}, "rollout": {"sync_canary": 7}, "scale": {"main_process_ip": "h"}}
    )
    assert idle_settings(config) == [
        "memory.lora_rank has no effect: memory.adapter is none",
        "rollout.sync_canary has no effect: rollout.engine is transformers",
        "scale.main_process_ip has no effect: scale.machines is 1",
    ]
    assert idle_settings(RunConfig()) == []


def test_module_names_are_read_from_the_headers_alone(tiny_model: Path) -> None:
    names = ("down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj")
    assert sorted(linear_module_names(tiny_model)) == list(names)


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\x05\0\0\0\0\0\0\0[1,2]", b"\x10\0\0\0\0\0\0\0{"])
def test_an_odd_weight_file_gives_no_names(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    assert linear_module_names(tmp_path) == ()
