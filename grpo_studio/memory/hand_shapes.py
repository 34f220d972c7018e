"""The shapes that a hand sum needs of a model, from the numbers of its config.json. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grpo_studio.errors import ModelError


@dataclass(frozen=True)
class Shapes:
    """What the sums need of a decoder with gated MLPs, as Qwen3, Llama and Mistral are."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool

    @property
    def linears(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of a layer's linear modules."""
        attention, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "q": (self.hidden, attention), "k": (self.hidden, keys), "v": (self.hidden, keys),
            "o": (attention, self.hidden), "gate": (self.hidden, self.intermediate),
            "up": (self.hidden, self.intermediate), "down": (self.intermediate, self.hidden),
        }  # fmt: skip

    @property
    def linear_parameters(self) -> int:
        return self.layers * sum(inputs * outputs for inputs, outputs in self.linears.values())

    @property
    def embedding_parameters(self) -> int:
        """Of the embeddings and of the head, which are one when they are tied."""
        return (1 if self.tied else 2) * self.vocabulary * self.hidden

    def adapter_parameters(self, rank: int) -> int:
        """LoRA on all linear modules: A has rank x inputs numbers, B outputs x rank."""
        return self.layers * sum(rank * (inputs + outputs) for inputs, outputs in self.linears.values())


def shapes_of(config: Mapping[str, Any]) -> Shapes:
    """What a config.json says of the shapes.

    Raises:
        ModelError: a number is missing or is none that a model can have.
    """
    hidden, heads = _size(config, "hidden_size"), _size(config, "num_attention_heads")
    return Shapes(
        layers=_size(config, "num_hidden_layers"),
        hidden=hidden,
        intermediate=_size(config, "intermediate_size"),
        heads=heads,
        kv_heads=_size(config, "num_key_value_heads", heads),
        head_dim=_size(config, "head_dim", max(hidden // heads, 1)),
        vocabulary=_size(config, "vocab_size"),
        tied=config.get("tie_word_embeddings") is True,
    )


def _size(config: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = config.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 10**9:
        raise ModelError(f"the config has {key} {value!r}; it takes a whole number above 0"[:300])
    return value
