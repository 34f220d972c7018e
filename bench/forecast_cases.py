"""Small real models and settings whose memory `bench.forecast` foretells and measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.config_files import with_overrides

SMOLLM2: Mapping[str, Any] = {
    "model_type": "llama", "vocab_size": 49_152, "hidden_size": 576, "intermediate_size": 1536,
    "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True,
    "max_position_embeddings": 2048,
}  # fmt: skip
QWEN3: Mapping[str, Any] = {
    "model_type": "qwen3", "vocab_size": 20_000, "hidden_size": 256, "intermediate_size": 768,
    "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
    "tie_word_embeddings": True, "max_position_embeddings": 2048,
}  # fmt: skip
LLAMA: Mapping[str, Any] = {
    "model_type": "llama", "vocab_size": 32_000, "hidden_size": 512, "intermediate_size": 1376,
    "num_hidden_layers": 10, "num_attention_heads": 8, "num_key_value_heads": 8, "tie_word_embeddings": False,
    "max_position_embeddings": 2048,
}  # fmt: skip
GEMMA3: Mapping[str, Any] = {
    "model_type": "gemma3_text", "vocab_size": 100_000, "hidden_size": 320, "intermediate_size": 1024,
    "num_hidden_layers": 14, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 128,
    "sliding_window": 64, "tie_word_embeddings": True, "max_position_embeddings": 2048,
}  # fmt: skip
GPT2: Mapping[str, Any] = {
    "model_type": "gpt2", "vocab_size": 50_257, "n_embd": 384, "n_layer": 8, "n_head": 6, "n_positions": 1024,
}  # fmt: skip
QWEN2: Mapping[str, Any] = {
    "model_type": "qwen2", "vocab_size": 80_000, "hidden_size": 448, "intermediate_size": 2432,
    "num_hidden_layers": 12, "num_attention_heads": 7, "num_key_value_heads": 1, "tie_word_embeddings": True,
    "max_position_embeddings": 2048,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A model and a step on so many completions.

    Args:
        config: what its config.json says; random weights.
        folder: a real model's folder instead.
        overrides: settings as `--set` takes them.
    """

    model: str
    config: Mapping[str, Any]
    rows: int
    prompt_tokens: int
    completion_tokens: int
    overrides: tuple[str, ...] = field(default=())
    folder: Path | None = None

    def __str__(self) -> str:
        told = ", ".join(self.overrides)
        return f"{self.rows} x ({self.prompt_tokens} + {self.completion_tokens}), {told}"

    def run_config(self, source: Path) -> RunConfig:
        base = {
            "model": {"id": str(source)},
            "algorithm": {
                "prompts_per_step": self.rows // 2, "group_size": 2, "steps": 2,
                "max_completion_length": self.completion_tokens,
            },
            "memory": {"skip_dead_groups": False},
            "checkpoint": {"every": 0},
        }  # fmt: skip
        return RunConfig.model_validate(with_overrides(base, self.overrides))


def _set(dtype: str, backend: str, **more: Any) -> tuple[str, ...]:
    others = (f"{name.replace('__', '.')}={str(value).lower()}" for name, value in more.items())
    return (f"model.dtype={dtype}", f"memory.loss_backend={backend}", *others)


CHECKPOINTING = {"memory__gradient_checkpointing": True}
LORA = {"memory__adapter": "lora", "memory__lora_rank": 16}

CASES = (
    Case("SmolLM2-135M", SMOLLM2, 8, 64, 96, _set("float32", "full", memory__micro_batch=8)),
    Case("SmolLM2-135M", SMOLLM2, 8, 64, 96, _set("float32", "trl", memory__micro_batch=8)),
    Case("SmolLM2-135M", SMOLLM2, 8, 64, 96, _set("float32", "liger", memory__micro_batch=8)),
    Case("SmolLM2-135M", SMOLLM2, 4, 32, 96, _set("float32", "liger", memory__micro_batch=2, **CHECKPOINTING)),
    Case("Qwen3, 4 layers", QWEN3, 8, 16, 48, _set("bfloat16", "full", memory__micro_batch=8, **CHECKPOINTING)),
    Case("Qwen3, 4 layers", QWEN3, 8, 16, 48, _set("bfloat16", "trl", memory__micro_batch=4, **CHECKPOINTING)),
    Case("Qwen3, 4 layers", QWEN3, 8, 16, 48, _set("mixed", "liger", memory__micro_batch=8)),
    Case("Qwen3, 4 layers", QWEN3, 8, 16, 48, _set("mixed", "full", memory__micro_batch=2, **CHECKPOINTING)),
    Case("Qwen3, 4 layers", QWEN3, 8, 16, 48, _set("bfloat16", "liger", memory__micro_batch=8, **LORA)),
    Case("Llama, 10 layers", LLAMA, 8, 40, 88, _set("float32", "trl", memory__micro_batch=8, algorithm__beta=0.04)),
    Case("Llama, 10 layers", LLAMA, 8, 40, 88,
         _set("float32", "liger", memory__micro_batch=4, **LORA, **CHECKPOINTING)),
    Case("Llama, 10 layers", LLAMA, 4, 40, 56,
         _set("mixed", "trl", memory__micro_batch=4, algorithm__beta=0.04, algorithm__loss_type="grpo", **LORA)),
    Case("Gemma 3, 14 layers", GEMMA3, 8, 32, 64, _set("float32", "full", memory__micro_batch=4)),
    Case("Gemma 3, 14 layers", GEMMA3, 4, 32, 64, _set("float32", "trl", memory__micro_batch=4, **LORA)),
    Case("GPT-2, 8 layers", GPT2, 8, 32, 128, _set("float32", "liger", memory__micro_batch=8)),
    Case("GPT-2, 8 layers", GPT2, 8, 32, 128, _set("float32", "full", memory__micro_batch=2, **CHECKPOINTING)),
    Case("Qwen2.5, 12 layers", QWEN2, 8, 24, 72,
         _set("float32", "liger", memory__micro_batch=4, algorithm__loss_type="grpo")),
    Case("Qwen2.5, 12 layers", QWEN2, 8, 24, 72,
         _set("float32", "trl", memory__micro_batch=8, model__attn_implementation="eager", **CHECKPOINTING)),
)  # fmt: skip
"""Every backend, precision and adapter, with and without checkpointing, a reference model, accumulation."""
