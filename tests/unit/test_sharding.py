"""What the trainer is asked for is understood by the libraries that read it; what it did is compared with that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate.utils import FullyShardedDataParallelPlugin
from accelerate.utils.deepspeed import HfDeepSpeedConfig
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig
from trl import GRPOConfig

from grpo_studio.config import MemorySettings, ScaleSettings
from grpo_studio.errors import ConfigError
from grpo_studio.training.sharding import require_wrapped, sharding_arguments


def arguments(strategy: str, **memory: Any) -> dict[str, Any]:
    scale = ScaleSettings.model_validate({"processes": 2, "strategy": strategy})
    return sharding_arguments(scale, MemorySettings.model_validate(memory))


def grpo_config(tmp_path: Path, **more: Any) -> GRPOConfig:
    return GRPOConfig(**{"output_dir": str(tmp_path), "use_cpu": True, "bf16": False, "report_to": "none", **more})


def test_one_process_asks_for_nothing() -> None:
    assert arguments("none") == {}


def test_ddp_does_not_look_for_unused_parameters(tmp_path: Path) -> None:
    assert grpo_config(tmp_path, **arguments("ddp")).ddp_find_unused_parameters is False


@pytest.mark.parametrize("checkpointing", [False, True])
def test_fsdp_is_version_2_and_recomputes_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpointing: bool
) -> None:
    monkeypatch.setenv("FSDP_CPU_RAM_EFFICIENT_LOADING", "false")  # set by transformers; undone after the test
    asked = {"gradient_checkpointing": checkpointing, **arguments("fsdp", gradient_checkpointing=checkpointing)}
    config = grpo_config(tmp_path, **asked)
    assert config.gradient_checkpointing is False
    plugin = FullyShardedDataParallelPlugin(**config.fsdp_plugin_args)
    assert plugin.fsdp_version == 2
    assert plugin.reshard_after_forward is True
    assert plugin.activation_checkpointing is checkpointing
    assert plugin.auto_wrap_policy.__name__ == "transformer_auto_wrap_policy"
    assert plugin.state_dict_type.name == "FULL_STATE_DICT"


@pytest.mark.parametrize(("strategy", "stage"), [("zero2", 2), ("zero3", 3)])
def test_the_trainer_fills_in_all_that_deepspeed_leaves_open(tmp_path: Path, strategy: str, stage: int) -> None:
    """transformers' own filling, on accelerate's own reader of the configuration: neither needs the package."""
    config = grpo_config(tmp_path, per_device_train_batch_size=4, gradient_accumulation_steps=2, max_grad_norm=0.5)
    read = _FilledIn(arguments(strategy)["deepspeed"])
    read.trainer_config_process(config)
    read.trainer_config_finalize(config, SimpleNamespace(config=SimpleNamespace(hidden_size=64)), 10)
    assert read.mismatches == []
    assert (read.is_zero2(), read.is_zero3()) == (stage == 2, stage == 3)
    assert read.get_value("train_micro_batch_size_per_gpu") == 4
    assert read.get_value("gradient_accumulation_steps") == 2
    assert read.get_value("gradient_clipping") == 0.5
    assert read.get_value("bf16.enabled") is False
    assert read.get_value("zero_optimization.reduce_bucket_size") == 64 * 64
    assert read.get_value("zero_optimization.stage3_gather_16bit_weights_on_model_save", False) is (stage == 3)
    assert "auto" not in list(leaves(read.config))


class _FilledIn(HfDeepSpeedConfig):  # type: ignore[misc]
    """transformers' class itself refuses to be made without deepspeed; its methods need nothing of it."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self.mismatches: list[str] = []

    is_auto = HfTrainerDeepSpeedConfig.is_auto
    fill_match = HfTrainerDeepSpeedConfig.fill_match
    fill_only = HfTrainerDeepSpeedConfig.fill_only
    trainer_config_process = HfTrainerDeepSpeedConfig.trainer_config_process
    trainer_config_finalize = HfTrainerDeepSpeedConfig.trainer_config_finalize


def leaves(config: dict[str, Any]) -> list[Any]:
    return [leaf for value in config.values() for leaf in (leaves(value) if isinstance(value, dict) else [value])]


class DistributedDataParallel(torch.nn.Module):
    """Stands in for torch's, which needs a process group; known by its name."""


class DeepSpeedEngine(torch.nn.Module):
    def __init__(self, stage: int = 0) -> None:
        super().__init__()
        self._stage = stage

    def zero_optimization_stage(self) -> int:
        return self._stage


def trainer(model: torch.nn.Module, processes: int = 2) -> Any:
    return SimpleNamespace(model_wrapped=model, accelerator=SimpleNamespace(num_processes=processes))


@pytest.mark.parametrize(
    ("strategy", "processes", "model", "wrapper"),
    [
        ("none", 1, torch.nn.Identity, "none"),
        ("ddp", 2, DistributedDataParallel, "DistributedDataParallel"),
        ("zero2", 2, lambda: DeepSpeedEngine(2), "DeepSpeedEngine"),
        ("zero3", 8, lambda: DeepSpeedEngine(3), "DeepSpeedEngine"),
    ],
)
def test_what_was_asked_for_is_confirmed(
    strategy: str, processes: int, model: Callable[[], torch.nn.Module], wrapper: str
) -> None:
    facts = require_wrapped(strategy, processes, trainer(model(), processes))
    assert facts == {"world_size": processes, "wrapper": wrapper}


@pytest.mark.parametrize(
    ("strategy", "model", "said"),
    [
        (
            "fsdp",
            DistributedDataParallel,
            "fsdp was asked for, and the model is wrapped in DistributedDataParallel; use the strategy ddp",
        ),
        ("ddp", torch.nn.Identity, "ddp was asked for, and the model is not wrapped; use the strategy none"),
        ("zero2", DistributedDataParallel, "use the strategy ddp"),
        ("ddp", lambda: DeepSpeedEngine(2), "wrapped in DeepSpeedEngine"),
        ("zero3", lambda: DeepSpeedEngine(2), "DeepSpeed runs stage 2; use zero2"),
    ],
)
def test_another_wrapper_is_refused(strategy: str, model: Callable[[], torch.nn.Module], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        require_wrapped(strategy, 2, trainer(model()))


def test_another_number_of_processes_is_refused() -> None:
    with pytest.raises(ConfigError, match="2 processes were asked for, and the trainer counts 1"):
        require_wrapped("ddp", 2, trainer(DistributedDataParallel(), processes=1))


def test_a_real_wrapper_is_known(tmp_path: Path) -> None:
    """DDP and FSDP2 themselves, in a group of one process."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    try:
        ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        assert require_wrapped("ddp", 1, trainer(ddp, 1))["wrapper"] == "DistributedDataParallel"
        linear = torch.nn.Linear(2, 2)
        fully_shard(linear, mesh=init_device_mesh("cpu", (1,)))
        assert require_wrapped("fsdp", 1, trainer(linear, 1))["wrapper"] == "FSDPModule"
    finally:
        torch.distributed.destroy_process_group()
