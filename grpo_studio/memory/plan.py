"""What a forecast is made for: a run's settings with all that they leave open decided. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from grpo_studio.config import RunConfig
from grpo_studio.memory.cards import multiplies_bfloat16
from grpo_studio.memory.closed_forms import ModelShape
from grpo_studio.memory.forecast import CardSize

ASSUMED_PROMPT = 256
"""Tokens of a prompt when nobody says: a question of a few sentences in a chat template."""


@dataclass(frozen=True)
class Counts:
    """Numbers (not bytes) in a model, counted from its modules or by its config.

    Args:
        parameters: of the model without an adapter, tied matrices once.
        trainable: those that the run trains.
        adapter: those of the adapter; 0 without one.
        quantizable: in the linear layers but the head: those that NF4 packs.
        largest_linear, layer: of the largest of them, and of one layer.
        vocabulary: of the head's matrix.
        buffer_bytes: of what is neither trained nor saved.
    """

    parameters: int
    trainable: int
    adapter: int
    quantizable: int
    largest_linear: int
    layer: int
    vocabulary: int
    buffer_bytes: int = 0


class Measured(Protocol):
    """Where the parts of a pass come from: a trace, or the closed form."""

    @property
    def counts(self) -> Counts:
        """The model's numbers."""
        ...

    @property
    def backends(self) -> tuple[str, ...]:
        """The loss backends that there are parts for."""
        ...

    def loss_parts(self, backend: str, micro_batch: int) -> Mapping[str, int]:
        """Gradients, activations, logits_and_loss and other at the greatest moment of forward and backward."""
        ...

    def forward_parts(self, backend: str, micro_batch: int) -> Mapping[str, int]:
        """The same of a pass without gradient."""
        ...


@dataclass(frozen=True)
class Plan:
    """Settings, the model's shape and the card.

    Args:
        weight_bytes: of one number of the weights as they are loaded.
        autocasts: whether matrices are multiplied in bfloat16 by autocast.
    """

    config: RunConfig
    shape: ModelShape
    card: CardSize | None
    prompt_tokens: int
    weight_bytes: int
    autocasts: bool

    @classmethod
    def of(cls, config: RunConfig, shape: ModelShape, card: CardSize | None, prompt_tokens: int) -> Plan:
        """Decides the precision as `training.precision` does on such a device."""
        wanted = config.model.dtype
        fast = multiplies_bfloat16(card) if card is not None else cpu_multiplies_bfloat16()
        loaded = "float32" if wanted == "mixed" else wanted or ("bfloat16" if fast else "float32")
        autocasts = wanted == "mixed" or (card is not None and loaded == "bfloat16")
        return cls(config, shape, card, prompt_tokens, 2 if loaded == "bfloat16" else 4, autocasts)

    @property
    def dtype(self) -> Literal["float32", "bfloat16"]:
        return "bfloat16" if self.weight_bytes == 2 else "float32"

    @property
    def on_gpu(self) -> bool:
        return self.card is not None

    @property
    def compute_bytes(self) -> int:
        """Of one number in matrices as they are multiplied."""
        return 2 if self.autocasts else self.weight_bytes

    @property
    def completion_tokens(self) -> int:
        return self.config.algorithm.max_completion_length

    @property
    def tokens(self) -> int:
        """Of the longest row: prompt and completion."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def completions(self) -> int:
        """What one process samples at once: all of its share of a step, whatever the micro-batch (trl 1.16)."""
        return max(1, self.config.completions_per_step // self.config.world_size)

    @property
    def micro_batch(self) -> int:
        return self.config.effective_micro_batch()

    @property
    def adapter(self) -> str:
        return self.config.memory.adapter

    @property
    def strategy(self) -> str:
        return self.config.scale.strategy if self.config.world_size > 1 else "none"

    @property
    def adapter_bytes(self) -> int:
        """Of one number of the adapter: PEFT makes it float32, TRL bfloat16 for QLoRA; ZeRO-3 leaves it as loaded."""
        if self.adapter == "qlora":
            return 2
        return self.weight_bytes if self.strategy == "zero3" else 4

    @property
    def trainable_bytes(self) -> int:
        """Of one trained number as it is stored, and so of its gradient and each of its Adam states."""
        if self.adapter != "none":
            return self.adapter_bytes
        return 4 if self.strategy == "fsdp" and self.autocasts else self.weight_bytes

    @property
    def traced_bytes(self) -> int:
        """Of one trained number in a trace, which is of one device and of LoRA on whole weights."""
        return 4 if self.adapter != "none" else self.weight_bytes

    def extra(self, name: str, default: Any = None) -> Any:
        """A field of TRL's own."""
        return self.config.algorithm.extra.get(name, default)


def cpu_multiplies_bfloat16() -> bool:
    """As torch asks oneDNN: whether this processor has the instructions of AVX-512 that it wants (Linux alone says)."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "").split()
    return {"avx512bw", "avx512vl", "avx512dq"} <= set(flags)
