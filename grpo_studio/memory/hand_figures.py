"""The figures of the usual hand sum for a model's memory, to the digit, and where a forecast differs from them. Pure.

The sum is the one that is published for Qwen3-8B (36 layers, hidden 4,096, 8 KV heads of 128): weights of 2 bytes, half
a byte in NF4, and 16 bytes for each parameter that is trained: float32 weight, gradient and Adam's two moments, as in
ZeRO (arXiv 1910.02054, section 3.1). Adapters are counted as in LoRA (arXiv 2106.09685, section 4.1). GB are 1e9 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from grpo_studio.errors import ModelError
from grpo_studio.memory.closed_forms import NF4_BYTES, ModelShape, nf4_bytes

QWEN3_8B: Mapping[str, Any] = {
    "num_hidden_layers": 36, "hidden_size": 4096, "intermediate_size": 12288, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": False,
}  # fmt: skip
"""The numbers of https://huggingface.co/Qwen/Qwen3-8B that the sums need."""
RANK = 8
TRAINED_BYTES = 16
SEQUENCES, TOKENS = 8, 1024
LARGEST_SIZE = 10**9


@dataclass(frozen=True)
class HandFigure:
    """One figure.

    Args:
        value: as published, rounded.
        exact: the same before any rounding, in bytes or parameters.
        formula, worked: how it comes about, in words and in numbers.
        differs: what a forecast counts otherwise, and why.
    """

    name: str
    title: str
    value: Decimal
    unit: str
    exact: int
    formula: str
    worked: str
    differs: str

    @property
    def text(self) -> str:
        return f"{self.value:,} {self.unit}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        value = int(self.value) if self.value == self.value.to_integral() else float(self.value)
        return {**vars(self), "value": value, "text": self.text}


def hand_figures(config: Mapping[str, Any] = QWEN3_8B) -> tuple[HandFigure, ...]:
    """The published figures, from the numbers of a config.json alone.

    Parameters are counted and rounded to two digits, 8.2e9 for Qwen3-8B. Totals add figures that are rounded already,
    16.4 and 0.35, and halves are rounded up: so 16.75 becomes 16.8, where the bytes themselves would give 16.7.

    Raises:
        ModelError: a number is missing or is none that a model can have.
    """
    shape = shape_of(config)
    parameters = _two_digits(shape.linear_parameters + shape.embeddings)
    adapter = shape.lora_parameters(RANK, "all-linear")
    with_adapter = _with_adapter(shape, parameters, adapter)
    return (*_frozen(shape, parameters, adapter), *with_adapter, *_trained(parameters), *_cache(shape))


def shape_of(config: Mapping[str, Any]) -> ModelShape:
    """The shape of a config.json that has all of its numbers: no hand sum is made of guessed ones.

    Raises:
        ModelError: a number is missing or is none that a model can have.
    """
    for key in (name for name in QWEN3_8B if name != "tie_word_embeddings"):
        value = config.get(key)
        if value is None and key in ("num_key_value_heads", "head_dim"):  # derived from the others
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < LARGEST_SIZE:
            raise ModelError(f"the config has {key} {value!r}; it takes a whole number above 0"[:300])
    return ModelShape.of(config)


def hand_lines(figures: tuple[HandFigure, ...]) -> list[str]:
    """The figures for people, each with its sum and with what a forecast counts otherwise."""
    lines = []
    for figure in figures:
        lines += [f"{figure.title}: {figure.text}", f"  {figure.worked} ({figure.formula})", f"  {figure.differs}"]
    return lines


def _frozen(shape: ModelShape, parameters: int, adapter: int) -> tuple[HandFigure, ...]:
    """What lies under an adapter, and the adapter."""
    short, state = _short(parameters), _gb(adapter * TRAINED_BYTES, 2)
    base, packed = _gb(parameters * 2), _gb(parameters // 2)
    pairs = ", ".join(
        f"{name.removesuffix('_proj')} {inputs:,} to {outputs:,}" for name, (inputs, outputs) in shape.linears.items()
    )
    return (
        HandFigure(
            "base_16_bit", "Frozen base in 16 bits", base, "GB", parameters * 2,
            "parameters x 2 bytes", f"{short} x 2 = {base} GB",
            "A forecast counts each tensor of the real modules; in float32 the base takes twice this.",
        ),
        HandFigure(
            "lora_parameters", f"LoRA, rank {RANK}, on all linear modules", _millions(adapter), "M parameters", adapter,
            "layers x sum over the linear modules of rank x (inputs + outputs)",
            f"{shape.layers} x {adapter // shape.layers:,} = {adapter:,} ({pairs})",
            "The same in a forecast: it counts the adapter's real modules.",
        ),
        HandFigure(
            "lora_state", "LoRA's trainable state", state, "GB", adapter * TRAINED_BYTES,
            "adapter parameters x 16 bytes: float32 weight, gradient and two moments of Adam",
            f"{_millions(adapter)} M x 16 = {state} GB",
            "The same over a 16-bit base, where the adapter stays in float32. Over NF4 the adapter is bfloat16, and "
            f"its gradients and moments with it: 8 bytes a parameter, {_gb(adapter * 8, 2)} GB.",
        ),
        HandFigure(
            "base_nf4", "Base in NF4", packed, "GB", parameters // 2,
            "parameters x 4 bits", f"{short} x 0.5 = {packed} GB",
            f"About {_gb(_nf4_bytes(shape))} GB in a forecast: bitsandbytes keeps embeddings and head in 16 bits "
            f"({_gb(shape.embeddings * 2)} GB), and the constants of each block of 64 weights take another "
            f"{8 * NF4_BYTES - 4:.3f} bits a parameter.",
        ),
    )  # fmt: skip


def _with_adapter(shape: ModelShape, parameters: int, adapter: int) -> tuple[HandFigure, ...]:
    """Base and adapter together: figures that are rounded already are added, and rounded again."""
    base, packed, state = _gb(parameters * 2), _gb(parameters // 2), _gb(adapter * TRAINED_BYTES, 2)
    lora, qlora = _rounded(base + state), _rounded(packed + state)
    return (
        HandFigure(
            "lora_total", "LoRA in all", lora, "GB", parameters * 2 + adapter * TRAINED_BYTES,
            "base in 16 bits + trainable state", f"{base} + {state} = {base + state}, rounded up: {lora} GB",
            "A forecast adds what the sum leaves out: activations, logits and loss, the KV cache, and what the "
            "allocator reserves.",
        ),
        HandFigure(
            "qlora_total", "QLoRA in all", qlora, "GB", parameters // 2 + adapter * TRAINED_BYTES,
            "base in NF4 + trainable state", f"{packed} + {state} = {packed + state}, rounded up: {qlora} GB",
            f"A forecast has {_gb(_nf4_bytes(shape) + adapter * 8)} GB, for embeddings and head in 16 bits. It adds "
            "activations, logits and loss, the KV cache, and a layer's weights while they are unpacked to 16 bits.",
        ),
    )  # fmt: skip


def _trained(parameters: int) -> tuple[HandFigure, ...]:
    """Full fine-tuning, alone and with the other models that a method holds."""
    short, base, full = _short(parameters), _gb(parameters * 2), _gb(parameters * TRAINED_BYTES)
    return (
        HandFigure(
            "full", "Full fine-tuning", full, "GB", parameters * TRAINED_BYTES,
            "parameters x 16 bytes: float32 weight, gradient and two moments of Adam",
            f"{short} x 16 = {full} GB",
            "Right for model.dtype float32 and mixed. In bfloat16 weights, gradients and moments have 2 bytes each: 8 "
            f"bytes a parameter, {_gb(parameters * 8)} GB. SGD and Adafactor keep less; activations and logits come on "
            "top; FSDP and ZeRO divide it by the processes.",
        ),
        HandFigure(
            "full_with_reference", "Full fine-tuning with a reference in 16 bits", full + base, "GB",
            parameters * (TRAINED_BYTES + 2),
            "full fine-tuning + base in 16 bits", f"{full} + {base} = {full + base} GB",
            "There is a reference only when algorithm.beta is above 0. It has the policy's own number format; with an "
            "adapter it takes nothing: it is the base with the adapter switched off.",
        ),
        HandFigure(
            "ppo", "PPO with value, reference and reward models", 2 * (full + base), "GB",
            2 * parameters * (TRAINED_BYTES + 2),
            "policy and value model at 16 bytes a parameter + reference and reward model at 2",
            f"2 x {full} + 2 x {base} = {2 * (full + base)} GB",
            "No run here holds it: GRPO has no value model, and verifiers are programs. A reward model among the "
            "rewards adds its weights.",
        ),
    )  # fmt: skip


def _cache(shape: ModelShape) -> tuple[HandFigure, ...]:
    """The KV cache of generation (arXiv 2305.13245 for fewer key and value heads than heads)."""
    token = shape.kv_bytes_per_token(2, 2)
    whole, tokens = token * SEQUENCES * TOKENS, f"{SEQUENCES} x {TOKENS:,}"
    return (
        HandFigure(
            "kv_per_token", "KV cache of a token", Decimal(token), "bytes", token,
            "2 (key and value) x layers x KV heads x head size x 2 bytes",
            f"2 x {shape.layers} x {shape.kv_heads} x {shape.head_dim} x 2 = {token:,} bytes",
            "The same in a forecast for a cache in 16 bits; in float32 twice this.",
        ),
        HandFigure(
            "kv_cache", f"KV cache of {tokens} tokens", _gb(whole), "GB", whole,
            "sequences x tokens x bytes of a token", f"{tokens} x {token:,} = {_gb(whole)} GB",
            "A forecast takes the completions that are generated at once, prompt and longest completion, and what "
            "growing the cache needs for a moment. vLLM takes its pool beforehand, whatever of it is used.",
        ),
    )  # fmt: skip


def _nf4_bytes(shape: ModelShape) -> int:
    """As bitsandbytes keeps it: linear modules in NF4, embeddings and head in 16 bits."""
    return shape.embeddings * 2 + nf4_bytes(shape.linear_parameters)


def _two_digits(count: int) -> int:
    """Rounded to two digits, as a model's size is told: 8,190,735,360 is 8.2e9."""
    return int(_rounded(Decimal(count), 1 - Decimal(count).adjusted()))


def _short(parameters: int) -> str:
    exponent = Decimal(parameters).adjusted()
    return f"{Decimal(parameters).scaleb(-exponent).normalize()}e{exponent}"


def _rounded(value: Decimal, places: int = 1) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def _gb(count: int, places: int = 1) -> Decimal:
    return _rounded(Decimal(count) / 10**9, places)


def _millions(count: int) -> Decimal:
    return _rounded(Decimal(count) / 10**6)
