"""Real trainers on a frozen batch of random tokens, at the size of real models: what `update_step` measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOTrainer
from trl.trainer.utils import split_tensor_dict

from grpo_studio.config import RunConfig
from grpo_studio.training.arguments import grpo_arguments
from grpo_studio.training.phases import PhaseClock
from grpo_studio.training.trainer import StudioTrainer

PLAIN = "TRL's own"
"""TRL's trainer without any of ours; the other kinds are ours, by the name of their loss backend."""
ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
DTYPE = torch.bfloat16 if ON_GPU else torch.float32


@dataclass(frozen=True)
class Shape:
    """A model and a batch of G completions for each prompt, in micro-batches. Completions are half to wholly long."""

    name: str
    vocabulary: int
    hidden: int
    layers: int
    intermediate: int
    heads: int
    kv_heads: int
    prompts: int
    group: int
    micro_batch: int
    prompt_tokens: int
    completion_tokens: int

    @property
    def completions(self) -> int:
        return self.prompts * self.group

    @property
    def accumulation(self) -> int:
        return self.completions // self.micro_batch

    def __str__(self) -> str:
        rows = f"{self.micro_batch}" if self.accumulation == 1 else f"{self.accumulation} x {self.micro_batch}"
        return (
            f"{self.name}: {rows} x ({self.prompt_tokens} + {self.completion_tokens}), vocabulary {self.vocabulary:,}"
        )


class Update:
    """One trainer of a kind on the frozen batch of a shape; called, it makes all gradients of one optimizer step."""

    def __init__(self, shape: Shape, kind: str, skip: bool, batch: dict[str, Any], folder: Path) -> None:
        self.trainer = make_trainer(shape, kind, skip, folder)
        self.model = self.trainer.accelerator.prepare_model(self.trainer.model)
        self.model.train()
        self.trainer.current_gradient_accumulation_steps = shape.accumulation
        self.trainer._prepare_inputs = lambda inputs: inputs
        self.parts = split_tensor_dict(batch, shape.accumulation)

    def __call__(self) -> float:
        self.model.zero_grad(set_to_none=True)
        loss = sum(self.one(part) for part in self.parts)
        self.forget()
        return float(loss)

    def one(self, part: dict[str, Any]) -> Any:
        return self.trainer.training_step(self.model, part, None)

    def forget(self) -> None:
        """What a step's end would take away."""
        self.trainer._metrics["train"].clear()
        if hasattr(self.trainer, "_tally"):
            self.trainer._tally.take(self.trainer.accelerator)

    def gradient(self) -> dict[str, Any]:
        return {name: value.grad for name, value in self.model.named_parameters()}

    def weights(self) -> int:
        """Bytes."""
        return sum(value.numel() * value.element_size() for value in self.model.parameters())


def make_trainer(shape: Shape, kind: str, skip: bool, folder: Path) -> Any:
    config = RunConfig.model_validate(
        {
            "model": {"dtype": str(DTYPE).removeprefix("torch.")},
            "algorithm": {
                "prompts_per_step": shape.prompts,
                "group_size": shape.group,
                "max_completion_length": shape.completion_tokens,
            },
            "memory": {
                "loss_backend": "trl" if kind == PLAIN else kind,
                "micro_batch": shape.micro_batch,
                "skip_dead_groups": skip,
            },
        }
    )
    arguments = grpo_arguments(config, folder)
    arguments.model_init_kwargs = None
    rows = Dataset.from_dict({"prompt": ["a"] * shape.completions, "sample": [0] * shape.completions})
    common = {"model": random_model(shape), "args": arguments, "train_dataset": rows, "processing_class": tokenizer()}
    if kind == PLAIN:
        return GRPOTrainer(reward_funcs=_no_reward, **common)
    return StudioTrainer(
        config=config, judged=_NothingJudged(), samples=[], clock=PhaseClock(), listener=_Listener(), **common
    )


def random_model(shape: Shape) -> Any:
    """Qwen3 layers of the shape's sizes; the head is tied to the embeddings."""
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=shape.vocabulary,
            hidden_size=shape.hidden,
            intermediate_size=shape.intermediate,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads,
            head_dim=64 if shape.hidden < 1024 else 128,
            max_position_embeddings=shape.prompt_tokens + shape.completion_tokens,
            tie_word_embeddings=True,
        )
    )
    return model.to(DTYPE)


def tokenizer() -> Any:
    """Nothing is tokenized; a trainer wants one."""
    words = Tokenizer(WordLevel({"<pad>": 0, "<end>": 1, "a": 2}, unk_token="<pad>"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<end>")


def frozen_batch(shape: Shape, dead_groups: int) -> dict[str, Any]:
    """A scored batch of random tokens, as TRL makes it, with so many groups of equal rewards among the others."""
    random = torch.Generator().manual_seed(1)
    count, width = shape.completions, shape.completion_tokens
    lengths = torch.randint(width // 2, width + 1, (count,), generator=random)
    lengths[0] = width
    mask = (torch.arange(width)[None, :] < lengths[:, None]).long()
    rewards = (torch.arange(shape.group) % 3 == 0).float().repeat(shape.prompts, 1)
    rewards[shape.prompts - dead_groups :] = 1.0
    advantages = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)
    shuffle = torch.randperm(count, generator=random)
    batch = {
        "prompt_ids": torch.randint(2, shape.vocabulary, (count, shape.prompt_tokens), generator=random),
        "prompt_mask": torch.ones(count, shape.prompt_tokens, dtype=torch.long),
        "completion_ids": torch.randint(2, shape.vocabulary, (count, width), generator=random) * mask,
        "completion_mask": mask,
        "advantages": advantages.flatten(),
    }
    batch = {name: value[shuffle] for name, value in batch.items()} | {"num_items_in_batch": mask.sum()}
    return {name: value.to(DEVICE) for name, value in batch.items()}


class _Listener:
    def batch_scored(self, step: int, batch: Any) -> None:
        """Nothing is scored here."""

    def step_done(self, step: int, logs: dict[str, Any]) -> None:
        """Nothing is logged here."""


class _NothingJudged:
    def functions(self, samples: Any) -> list[Callable[..., Any]]:
        return [_no_reward]


def _no_reward(completions: Any, **columns: Any) -> list[float]:
    raise AssertionError("the batch is frozen")
