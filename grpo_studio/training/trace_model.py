"""A model of a config.json for a trace: its modules on fake tensors at a small depth, its numbers at full depth.

A config.json is a stranger's: sizes are bounded before anything is built, no code of the model's own is run, nothing is
fetched.
"""

from __future__ import annotations

import re
import resource
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AutoModelForCausalLM
from transformers.initialization import no_init_weights
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from grpo_studio.engine_settings import MemorySettings
from grpo_studio.errors import ModelError
from grpo_studio.memory.traced import ModelBytes, TraceRequest
from grpo_studio.shown import shown
from grpo_studio.training.trace_body import Body
from grpo_studio.training.trace_counts import counted
from grpo_studio.training.trace_depth import Depth, decoder_layers
from grpo_studio.training.trace_heads import Heads

DATA_LIMIT = 8 << 30
"""Bytes that this process may take; a trace holds no tensor's values and needs far less."""
GREATEST = 1 << 31
"""No size of a model is this large."""
SIZES = {"layer": 1000, "experts": 4096, "heads": 1 << 14}
"""Bounds of what modules are made in numbers of, by a part of the name."""
DROPPED = (
    "auto_map", "quantization_config", "attn_implementation", "_attn_implementation", "_attn_implementation_internal",
    "experts_implementation", "_experts_implementation", "_name_or_path", "_commit_hash", "torch_dtype", "dtype",
)  # fmt: skip
"""Keys that would load code, weights or kernels from elsewhere, or that the request says."""
RECURRENT = re.compile(r"mamba|deltanet|rwkv", re.IGNORECASE)
"""Classes of layers that have kernels of their own."""
ATTENTIONS = ("eager", "sdpa")
"""Kinds of attention that are in transformers itself; others are traced as its default."""


class TracedModel:
    """A config's model: its numbers, its layers at small depths, its heads.

    Attributes:
        bytes: its numbers at full depth.

    Raises:
        ModelError: the config cannot be built; one line why.
    """

    def __init__(self, request: TraceRequest) -> None:
        self.request = request
        self.fake = FakeTensorMode()
        self._config = _bounded(request.config)
        self._whole = self._built(self._config)
        self._layers = decoder_layers(self._whole, self._config)
        self.bytes: ModelBytes = counted(self._whole, self._layers, request)

    @property
    def notes(self) -> tuple[str, ...]:
        """What of this model a trace sees otherwise than a run may do it."""
        found = []
        if any(RECURRENT.search(type(module).__name__) for module in self._whole.modules()):
            found.append(
                "its recurrent layers are traced as transformers' own torch code: with their CUDA kernels installed "
                "they need less"
            )
        asked = self.request.attention
        if asked is not None and asked not in ATTENTIONS:
            found.append(f"attention {shown(asked)} is traced as sdpa, which needs about as much")
        return tuple(found)

    @cached_property
    def depth(self) -> Depth:
        """Which depths stand for the whole; ModelError when none do."""
        # Beside frozen embeddings nothing before the first adapter carries gradient, unless checkpointing asks for it.
        return Depth.of(self._layers, alike=self.request.adapter == "none" or self.request.checkpointing)

    @cached_property
    def bodies(self) -> list[Body]:
        """The model at the two depths, or the one that there is, as the trainer prepares it, on fake tensors."""
        return [self.body(depth) for depth in dict.fromkeys(self.depth.traced)]

    def heads(self, hidden: tuple[torch.dtype, bool]) -> Heads:
        """What comes after the layers; on the meta device, which is faster, unless autocast has something to cast."""
        model = self._whole
        if self.request.autocast and self.request.dtype == "float32":
            model = self._faked(self._built(self.depth.shortened(self._config, self.depth.traced[0])))
        if self.request.adapter != "none":
            model.requires_grad_(False)
        return Heads(model, hidden, self.request, nullcontext() if model is self._whole else self.fake)

    def body(self, depth: int) -> Body:
        """The model at one of the two depths, or at its own."""
        config = self.depth.shortened(self._config, depth)
        base = self._built(config)
        layers = decoder_layers(base, config)
        model = self._faked(self._prepared(base))
        return Body(model, base, layers, self.depth.ends, self.request)

    def _faked(self, model: Any) -> Any:
        """A model of the meta device on fake tensors of a CPU; what was tied still is."""
        made: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # the old ones stay, so that no id is used again
        with self.fake:
            for held in (held for one in model.modules() for held in (one._parameters, one._buffers, vars(one))):
                for name, old in held.items():
                    if isinstance(old, torch.Tensor):
                        if id(old) not in made:
                            made[id(old)] = old, _on_cpu(old)
                        held[name] = made[id(old)][1]
        return model

    def _built(self, values: Mapping[str, Any]) -> Any:
        kind = values.get("model_type")
        if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
            raise ModelError(
                f"this transformers does not know models of type {shown(kind)}, and code of their own is not run; "
                "go by the closed form"
            )
        config = CONFIG_MAPPING[kind].from_dict(dict(values))
        attention = self.request.attention if self.request.attention in ATTENTIONS else None
        dtype = getattr(torch, self.request.dtype)
        options = {} if attention is None else {"attn_implementation": attention}
        with torch.device("meta"), no_init_weights():
            model = AutoModelForCausalLM.from_config(config, dtype=dtype, trust_remote_code=False, **options)
        model.tie_weights()
        return model

    def _prepared(self, model: Any) -> Any:
        request = self.request
        if request.adapter != "none":
            from peft import get_peft_model

            from grpo_studio.training.adapters import adapter_arguments

            memory = MemorySettings(
                adapter="lora",
                lora_rank=request.lora_rank,
                lora_targets=request.lora_targets,
                lora_dropout=request.lora_dropout,
            )
            with torch.device("meta"):
                model = get_peft_model(model, adapter_arguments(memory, request.dtype)["peft_config"])
            if request.checkpointing:
                model.enable_input_require_grads()
        model.train()
        if request.checkpointing:
            model.gradient_checkpointing_enable()
        return model


def _on_cpu(old: torch.Tensor) -> torch.Tensor:
    new = torch.empty_strided(old.size(), old.stride(), dtype=old.dtype, device="cpu")
    return torch.nn.Parameter(new, requires_grad=old.requires_grad) if isinstance(old, torch.nn.Parameter) else new


def limit_memory() -> None:
    """Let an absurd model end in a MemoryError, not in a machine without memory."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = DATA_LIMIT if most == resource.RLIM_INFINITY else min(DATA_LIMIT, most)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))


def _bounded(values: Mapping[str, Any], inside: str = "") -> dict[str, Any]:
    """A config without what would fetch or run something.

    Raises:
        ModelError: a size is absurd.
    """
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if name in DROPPED:
            continue
        if isinstance(value, Mapping):
            value = _bounded(value, f"{inside}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            _require_size(f"{inside}{name}", value)
        kept[name] = value
    return kept


def _require_size(name: str, value: float) -> None:
    if isinstance(value, float) and not value.is_integer():
        return
    limit = next((most for part, most in SIZES.items() if part in name), GREATEST)
    if isinstance(value, int) and not -GREATEST < value <= limit:
        raise ModelError(
            f"the model's config.json says {shown(name)}={shown(value)}, and no model has more than {limit:,}; "
            "fetch or save the model again"
        )
