"""Traces of real modules without weights, held against real trainers; and the child that makes them."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from frozen_batch import BACKENDS, Setting, small_work, trained
from tiny_model import make_tiny_model
from torch.distributed._tools.mem_tracker import MemTracker
from transformers import TrainerCallback

from grpo_studio.memory.traced import TraceRequest
from grpo_studio.memory.tracer import TraceError, Tracer
from grpo_studio.training.tensor_bytes import TensorBytes
from grpo_studio.training.trace_body import Body
from grpo_studio.training.trace_child import answer
from grpo_studio.training.trace_heads import BACK, UP
from grpo_studio.training.trace_mode import heads_as_on
from grpo_studio.training.trace_model import TracedModel
from grpo_studio.training.trace_whole import trace

SMALL = {
    "model_type": "qwen3", "vocab_size": 5000, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 6,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": True,
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _small() -> Iterator[None]:
    with small_work():
        yield


@pytest.fixture(scope="module")
def tracer() -> Iterator[Tracer]:
    """One child for all tests; it loads its libraries while the others here run."""
    with Tracer() as made:
        made.warm()
        yield made


@pytest.fixture(scope="module")
def setting(tracer: Tracer, tmp_path_factory: pytest.TempPathFactory) -> Setting:
    return Setting(make_tiny_model(tmp_path_factory.mktemp("model")))


class _Watched(TrainerCallback):
    """Counts from the beginning of a step to its end, by both counts."""

    def __init__(self, *things: Any) -> None:
        self.ours, self.torch = TensorBytes(), _Totals()
        self.things = things

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.ours.track(*self.things)
        self.torch.track_external(*self.things)
        self.torch.__enter__()
        self.ours.__enter__()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.loss_peak = self.ours.peak

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.ours.__exit__(None, None, None)
        self.torch.__exit__(None, None, None)
        self.torch_peak = max(int(found["Total"]) for found in self.torch.get_tracker_snapshot("peak").values())


class _Totals(MemTracker):
    """torch's count without its look into modules, which refuses a second forward of the same module."""

    def _no_look(self, *args: Any, **kwargs: Any) -> None:
        return None

    _pre_fw_hook = _post_fw_hook = _pre_bw_hook = _post_bw_hook = _no_look


SETTINGS = {
    "plain": ((), {}),
    "all at once": (
        ("memory.gradient_checkpointing=true", "memory.micro_batch=4", "memory.adapter=lora", "memory.lora_rank=8"),
        {"checkpointing": True, "adapter": "lora", "lora_rank": 8},
    ),
    "checkpointing": (("memory.gradient_checkpointing=true",), {"checkpointing": True}),
    "accumulation": (("memory.micro_batch=4",), {}),
    "LoRA": (("memory.adapter=lora", "memory.lora_rank=8"), {"adapter": "lora", "lora_rank": 8}),
}


QUICK = {("plain", "full"), ("all at once", "liger")}


@pytest.mark.parametrize(
    ("kind", "backend"),
    [
        pytest.param(kind, backend, marks=() if (kind, backend) in QUICK else pytest.mark.slow)
        for kind in SETTINGS
        for backend in BACKENDS
    ],
)
def test_a_trace_foretells_what_a_real_step_takes(setting: Setting, kind: str, backend: str) -> None:
    """Two layers of 32; `bench.forecast` does the same for larger models."""
    overrides, asked = SETTINGS[kind]
    batch = setting.batch(2)
    batch["completion_mask"] = torch.ones_like(batch["completion_mask"])  # full completions, as a trace assumes
    prompt, completion = batch["prompt_ids"].shape[1], batch["completion_ids"].shape[1]
    config = json.loads((setting.folder / "config.json").read_text())
    traced = trace(TracedModel(TraceRequest(config, prompt, completion, dtype="float32", device="cpu", **asked)))
    several = "memory.micro_batch=4" in overrides
    held = traced.model.weights + traced.model.adapter_bytes + traced.model.buffers
    trainer = setting.trainer(backend, batch, overrides=overrides)
    watched = _Watched(trainer.model)
    trainer.add_callback(watched)
    trained(trainer)
    expected = held + sum(traced.loss_parts(backend, 4 if several else 8, accumulates=several).values())
    assert expected == pytest.approx(watched.loss_peak, rel=0.05)
    assert watched.ours.peak == watched.torch_peak


@pytest.mark.parametrize(
    ("rows", "more"),
    [
        ((7, 60), {"adapter": "lora"}),
        pytest.param((3, 200), {}, marks=pytest.mark.slow),
        pytest.param((1, 20, 300), {"dtype": "bfloat16", "device": "cuda"}, marks=pytest.mark.slow),
        pytest.param((5, 90), {"adapter": "lora", "checkpointing": True, "device": "cuda"}, marks=pytest.mark.slow),
        pytest.param((5, 90), {"autocast": True, "checkpointing": True}, marks=pytest.mark.slow),
    ],
    ids=["adapter without gradient below", "all", "on a GPU", "adapter, checkpointing", "autocast"],
)
def test_depth_and_batch_are_extrapolated_to_what_they_are(rows: tuple[int, ...], more: dict[str, Any]) -> None:
    """All six layers and other batches traced as they are: the lines through two of each meet them."""
    model = TracedModel(TraceRequest(SMALL, 12, 40, **({"dtype": "float32"} | more)))
    traced = trace(model)
    whole = model.body(model.depth.full)
    for count in rows:
        with model.fake:
            found = whole.run(count, True)
        heads = model.heads(found.hidden)
        for backend in BACKENDS:
            with heads_as_on(model.request.device, scaled=False):
                head = heads.loss(backend, count)
            direct = max(
                *(series.sum(1).max() for series in found.instants.values()),
                head[UP].sum(1).max() + (found.kept + found.cached).sum(),
                head[BACK].sum(1).max() + found.kept.sum(),
            )
            told = sum(traced.loss_parts(backend, count, accumulates=False).values())
            assert told == pytest.approx(direct, rel=0.02), (backend, count)
            assert told >= direct * 0.995, "a chunk that is not full takes less than foretold, never more"


def test_an_adapter_is_counted_as_peft_makes_it() -> None:
    model = TracedModel(TraceRequest(SMALL, 4, 4, adapter="lora", lora_rank=4, lora_targets="q_proj, down_proj"))
    for body, depth in zip(model.bodies, model.depth.traced, strict=True):
        made = _trainable(body)
        assert made == model.bytes.adapter_parameters * depth // model.bytes.layers
    assert model.bytes.trainable == model.bytes.adapter_parameters


def _trainable(body: Body) -> int:
    return sum(one.numel() for one in body.model.parameters() if one.requires_grad)


def test_layers_that_alternate_are_traced_by_whole_patterns() -> None:
    mixed = SMALL | {
        "model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
        "decoder_sparse_step": 2, "num_hidden_layers": 7,
    }  # fmt: skip
    depth = TracedModel(TraceRequest(mixed, 4, 8)).depth
    assert depth.full == 7
    low, high = depth.traced
    assert high - low == 2, "a dense layer and one of experts"


def test_traces_leave_nothing_behind() -> None:
    line = json.dumps(TraceRequest(SMALL | {"num_hidden_layers": 1}, 4, 8).as_dict()).encode()

    def alive() -> int:
        gc.collect()
        return sum(issubclass(type(one), torch.Tensor) for one in gc.get_objects())

    assert "traced" in answer(line)
    before = alive()
    for _ in range(2):
        assert "traced" in answer(line)
    assert alive() <= before + 5


# --- the child ---


def test_a_child_traces_and_outlives_bad_requests(tracer: Tracer) -> None:
    good = tracer.trace(TraceRequest(SMALL | {"num_hidden_layers": 1}, 8, 16))
    child = tracer.pid
    assert good.model.layers == 1
    assert set(good.loss) == set(BACKENDS)
    for config, words in HOSTILE.items():
        with pytest.raises(TraceError, match=words) as refused:
            tracer.trace(TraceRequest(json.loads(config), 8, 16))
        assert "\n" not in str(refused.value)
    assert tracer.trace(TraceRequest(SMALL | {"num_hidden_layers": 1}, 8, 16)).loss == good.loss
    assert tracer.pid == child


HOSTILE = {
    json.dumps(changed): words
    for changed, words in (
        ({"model_type": "own-thing"}, "does not know models of type own-thing"),
        ({}, "does not know models of type None"),
        (SMALL | {"num_hidden_layers": 10**9}, "num_hidden_layers=1000000000, and no model has more than 1,000"),
        (SMALL | {"num_hidden_layers": 0}, "no list of layers"),
        (SMALL | {"num_hidden_layers": "many"}, "expected int, got str"),
        (SMALL | {"hidden_size": -64}, "cannot be traced"),
        (SMALL | {"vocab_size": 10**30}, "no model has more than"),
        (SMALL | {"model_type": "qwen3_moe", "num_experts": 10**6}, "num_experts=1000000"),
        (SMALL | {"num_attention_heads": 3, "head_dim": 0}, "cannot be traced"),
        ({"model_type": "t5"}, "cannot be traced"),
    )
}


def test_what_would_fetch_or_run_code_is_left_out(tracer: Tracer) -> None:
    small = SMALL | {"num_hidden_layers": 1}
    own = small | {
        "auto_map": {"AutoModelForCausalLM": "evil.Model"}, "attn_implementation": "somebody/kernel",
        "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True},
    }  # fmt: skip
    assert tracer.trace(TraceRequest(own, 8, 16)).loss == tracer.trace(TraceRequest(small, 8, 16)).loss


def test_a_model_whose_step_cannot_be_traced_still_is_counted(tracer: Tracer) -> None:
    opt = {"model_type": "opt", "vocab_size": 500, "hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 2,
           "num_attention_heads": 2, "word_embed_proj_dim": 32}  # fmt: skip
    with pytest.raises(TraceError, match="cannot be traced: DataDependentOutputException") as refused:
        tracer.trace(TraceRequest(opt, 8, 16))
    assert refused.value.model_bytes is not None
    assert refused.value.model_bytes.layers == 2


def test_capped_logits_leave_liger_out_alone(tracer: Tracer) -> None:
    capped = SMALL | {
        "num_hidden_layers": 1,
        "model_type": "gemma2",
        "final_logit_softcapping": 30.0,
        "query_pre_attn_scalar": 16,
    }
    traced = tracer.trace(TraceRequest(capped, 8, 16))
    assert set(traced.loss) == {"full", "trl"}
    assert "cap" in traced.untraced["liger"]


def test_a_trace_that_takes_too_long_is_given_up() -> None:
    with Tracer(limit=0.05) as hasty:
        with pytest.raises(TraceError, match=r"took over 0\.05 seconds"):
            hasty.trace(TraceRequest(SMALL, 8, 16))
        assert hasty.pid is None


def test_a_child_dies_with_who_started_it(tmp_path: Path) -> None:
    code = (
        "import os; from grpo_studio.memory.tracer import Tracer; t = Tracer(); t.warm(); print(t.pid, flush=True); "
        "os._exit(0)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    pid = int(done.stdout)
    end = time.monotonic() + 30
    while _alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
