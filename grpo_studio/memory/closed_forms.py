"""Bytes that follow from numbers alone: KV cache, Adam states, LoRA ranks, NF4 constants; and a model's shape. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grpo_studio.errors import ModelError
from grpo_studio.lora_targets import target_names
from grpo_studio.shown import shown

NF4_BLOCK = 64
NF4_SECOND_BLOCK = 256
NF4_BYTES = 0.5 + 1 / NF4_BLOCK + 4 / (NF4_BLOCK * NF4_SECOND_BLOCK)
"""Bytes of a number in NF4: 4 bits, 8 bits of scale for each 64, and of those a float32 for each 256: 4.127 bits in all
(Dettmers et al., arXiv 2305.14314, section 3, double quantization)."""
ADAM_STATES = 2
"""Numbers that AdamW keeps of each trained one: both moments (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2)."""
GREATEST = 1 << 31
"""No size of a model is this large."""
TIED = frozenset((
    "bloom", "cohere", "cohere2", "ernie4_5", "falcon", "gemma", "gemma2", "gemma3", "gemma3_text", "gpt2",
    "gpt_bigcode", "gpt_neo", "mpt", "opt", "smollm3", "starcoder2",
))  # fmt: skip
"""Families whose head is their embedding when a config does not say (defaults of transformers 5.17)."""


@dataclass(frozen=True)
class ModelShape:
    """The numbers of a decoder of transformer layers with gated MLPs, as its config names them.

    Args:
        biases: numbers in the biases of one layer's projections.
        head_norms: numbers in the norms of queries and keys of one layer.
        positions: tokens of the longest row that the model is made for; 0 when the config does not say.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    biases: int = 0
    head_norms: int = 0
    positions: int = 0

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ModelShape:
        """From a config.json.

        Raises:
            ModelError: it lacks one of the sizes.
        """
        outer, inner = config, config.get("text_config")
        config = inner if isinstance(inner, Mapping) and "hidden_size" in inner else config
        tied = config.get("tie_word_embeddings", outer.get("tie_word_embeddings"))
        hidden, heads = _size(config, "hidden_size", "n_embd"), _size(config, "num_attention_heads", "n_head")
        kv_heads = _size(config, "num_key_value_heads", default=heads)
        head_dim = _size(config, "head_dim", default=hidden // heads)
        family = str(config.get("model_type"))
        biases = (heads + 2 * kv_heads) * head_dim if config.get("attention_bias") or family.startswith("qwen2") else 0
        return cls(
            layers=_size(config, "num_hidden_layers", "n_layer"),
            hidden=hidden,
            intermediate=_size(config, "intermediate_size", "n_inner", default=4 * hidden),
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            vocabulary=_size(config, "vocab_size"),
            tied=family in TIED if tied is None else bool(tied),
            biases=biases,
            head_norms=2 * head_dim if family.startswith("qwen3") else 0,
            positions=_size(config, "max_position_embeddings", "n_positions", default=0),
        )

    @property
    def linears(self) -> dict[str, tuple[int, int]]:
        """The projections of a layer: numbers in and out."""
        width, narrow = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "q_proj": (self.hidden, width),
            "k_proj": (self.hidden, narrow),
            "v_proj": (self.hidden, narrow),
            "o_proj": (width, self.hidden),
            "gate_proj": (self.hidden, self.intermediate),
            "up_proj": (self.hidden, self.intermediate),
            "down_proj": (self.intermediate, self.hidden),
        }

    @property
    def linear_parameters(self) -> int:
        """Numbers in the projections of all layers: those that a quantized model holds in 4 bits."""
        return self.layers * sum(rows * columns for rows, columns in self.linears.values())

    @property
    def layer_parameters(self) -> int:
        """Numbers of one layer."""
        linear = sum(rows * columns for rows, columns in self.linears.values())
        return linear + self.biases + self.head_norms + 2 * self.hidden

    @property
    def embeddings(self) -> int:
        """Numbers in the embedding and, unless it is tied to it, the head."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def parameters(self) -> int:
        return self.layers * self.layer_parameters + self.embeddings + self.hidden

    def lora_parameters(self, rank: int, targets: str) -> int:
        """Numbers of a LoRA adapter: rank times what goes in and out of each target (Hu et al., arXiv 2106.09685)."""
        names = target_names(targets)
        chosen = (
            size
            for name, size in self.linears.items()
            if names is None or name in {n.rpartition(".")[2] for n in names}
        )
        return self.layers * sum(rank * (rows + columns) for rows, columns in chosen)

    def kv_bytes_per_token(self, key_bytes: int, value_bytes: int) -> int:
        """Bytes of keys and values of one token in all layers (Pope et al., arXiv 2211.05102, section 3.3)."""
        return self.layers * self.kv_heads * self.head_dim * (key_bytes + value_bytes)


def nf4_bytes(numbers: int) -> int:
    """Bytes of a matrix in NF4 with double quantization."""
    return math.ceil(numbers * NF4_BYTES)


def _size(config: Mapping[str, Any], *names: str, default: int | None = None) -> int:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            if value > GREATEST:
                told = f"the model's config.json says a {name} of {shown(value, 40)}, and no model has more than "
                raise ModelError(f"{told}{GREATEST:,}; fetch or save the model again")
            return value
    if default is not None:
        return default
    kind = config.get("model_type")
    raise ModelError(
        f"the model's config.json ({shown(kind, 40)}) has no {names[0]} that is a whole number above 0, so its memory "
        "cannot be told; use a decoder of transformer layers, or fetch or save the model again"
    )
