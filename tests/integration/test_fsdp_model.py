"""FSDP2 itself on one CPU process over gloo: what TRL's and our heads meet there. Whole runs need GPUs."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from grpo_studio.training.change import fingerprint
from grpo_studio.training.policy_head import add_policy_head
from grpo_studio.training.sharding import keep_outputs_exact

# torch warns about collectives on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")
IDS = torch.tensor([[5, 6, 7, 8]])


@pytest.fixture
def model(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The tiny model sharded as accelerate does it with bf16: layer by layer, outputs cast to bfloat16."""
    from transformers import AutoModelForCausalLM

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    dist.init_process_group("gloo", init_method=address, rank=0, world_size=1)
    try:
        model = AutoModelForCausalLM.from_pretrained(tiny_model)
        add_policy_head(model)
        policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.bfloat16)
        mesh = dist.device_mesh.init_device_mesh("cpu", (1,))
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        yield fully_shard(model, mesh=mesh, mp_policy=policy)
    finally:
        dist.destroy_process_group()


def head(hidden: torch.Tensor, lm_head: Any) -> dict[str, torch.Tensor]:
    return {"logps": torch.nn.functional.linear(hidden, lm_head.weight).float().log_softmax(-1)[..., 0]}


def test_log_probs_leave_the_model_in_float32(model: Any) -> None:
    assert model(IDS, policy_head=head)["logps"].dtype == torch.bfloat16
    keep_outputs_exact(model)
    assert model(IDS, policy_head=head)["logps"].dtype == torch.float32


def test_training_follows_an_evaluation_without_gradients(model: Any) -> None:
    with torch.no_grad():
        model(IDS, policy_head=head)
    model(IDS, policy_head=head)["logps"].sum().backward()
    assert all(parameter.grad is not None for parameter in model.model.layers.parameters())


def test_a_change_is_seen_in_the_shards(model: Any) -> None:
    before = fingerprint(model)
    assert torch.equal(before, fingerprint(model))
    model(IDS, policy_head=head)["logps"].sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert not torch.equal(before, fingerprint(model))
