"""The batch of a rehearsal: the longest prompt and full completions in every row, in the form of TRL's batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import use_adapter

from grpo_studio.config import RunConfig
from grpo_studio.training.trainer import StudioTrainer

Inputs = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """Tokens of a prompt and of a completion, completions of a process in a rollout and in one pass, passes a step."""

    prompt: int
    completion: int
    rows: int
    micro_batch: int
    accumulation: int

    @classmethod
    def of(cls, config: RunConfig, trainer: StudioTrainer, longest_prompt: int) -> Sizes:
        args = trainer.args
        return cls(
            prompt=max(longest_prompt, 1),
            completion=config.algorithm.max_completion_length,
            rows=args.per_device_train_batch_size * args.steps_per_generation,
            micro_batch=args.per_device_train_batch_size,
            accumulation=args.gradient_accumulation_steps,
        )

    def __str__(self) -> str:
        return f"prompts of {self.prompt:,} tokens and completions of {self.completion:,}, {self.micro_batch} in a pass"


@dataclass(frozen=True)
class Batch:
    """Token ids and masks: (N, P) of the prompts of a rollout, (B, C) of the completions of one pass."""

    prompt_ids: torch.Tensor
    prompt_mask: torch.Tensor
    completion_ids: torch.Tensor
    completion_mask: torch.Tensor

    def joined(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Ids and mask of one pass, (B, P + C)."""
        rows = self.completion_ids.shape[0]
        return (
            torch.cat([self.prompt_ids[:rows], self.completion_ids], 1),
            torch.cat([self.prompt_mask[:rows], self.completion_mask], 1),
        )


def batch_of(trainer: StudioTrainer, sizes: Sizes) -> Batch:
    """Random ordinary tokens, from a generator of their own.

    One token of one prompt is padding, where a prompt has several: attention takes another, larger way for a batch
    that has any, as nearly all have.
    """
    random = torch.Generator().manual_seed(0)
    ordinary = _ordinary_tokens(trainer)
    device = trainer.accelerator.device

    def tokens(rows: int, width: int) -> torch.Tensor:
        return ordinary[torch.randint(len(ordinary), (rows, width), generator=random)].to(device)

    prompts = tokens(sizes.rows, sizes.prompt)
    completions = tokens(sizes.micro_batch, sizes.completion)
    mask = torch.ones_like(prompts)
    if sizes.prompt > 1:
        mask[0, 0] = 0
    return Batch(prompts, mask, completions, torch.ones_like(completions))


def log_probs(trainer: StudioTrainer, batch: Batch) -> Inputs:
    """Those of the sampling policy and of the reference, where TRL computes them before the loss (trl 1.16.0)."""
    args, found = trainer.args, {}
    ids, mask = batch.joined()
    rows, width = batch.completion_ids.shape
    cycle = args.steps_per_generation * trainer.num_iterations

    def of(model: Any) -> torch.Tensor:
        result: torch.Tensor = trainer._get_per_token_logps_and_entropies(model, ids, mask, width, batch_size=rows)[0]
        return result

    with torch.no_grad(), disable_gradient_checkpointing(trainer.model, args.gradient_checkpointing_kwargs):
        if args.gradient_accumulation_steps % cycle or _corrects(trainer):
            found["old_per_token_logps"] = of(trainer.model)
        if trainer.beta != 0.0 and trainer.ref_model is not None:
            found["ref_per_token_logps"] = of(trainer.ref_model)
        elif trainer.beta != 0.0:
            own = trainer.accelerator.unwrap_model(trainer.model)
            with use_adapter(own, adapter_name="ref" if "ref" in own.peft_config else None):
                found["ref_per_token_logps"] = of(trainer.model)
    return found


def inputs_of(trainer: StudioTrainer, batch: Batch, more: Inputs) -> Inputs:
    """A micro-batch as TRL hands it to the loss: no completion is cut off, none has advantage 0."""
    rows, width = batch.completion_ids.shape
    device = batch.completion_ids.device
    signs = torch.ones(rows, device=device)
    signs[1::2] = -1.0
    whole = rows * width * trainer.args.steps_per_generation * trainer.accelerator.num_processes
    needed = {} if trainer.beta == 0.0 else {"ref_per_token_logps": torch.zeros(rows, width, device=device)}
    if _corrects(trainer):
        by_token = trainer.vllm_importance_sampling_mode.startswith("token")
        needed["importance_sampling_ratio"] = torch.ones(rows, width if by_token else 1, device=device)
    return {
        "prompt_ids": batch.prompt_ids[:rows],
        "prompt_mask": batch.prompt_mask[:rows],
        "completion_ids": batch.completion_ids,
        "completion_mask": batch.completion_mask,
        "advantages": signs,
        "num_items_in_batch": torch.tensor(whole, device=device),
        **needed,
        **more,
    }


def _corrects(trainer: StudioTrainer) -> bool:
    return bool(trainer.use_vllm and trainer.vllm_importance_sampling_correction)


def _ordinary_tokens(trainer: StudioTrainer) -> torch.Tensor:
    """Ids of the vocabulary that stand for text: an image's, say, would have the model look for one."""
    tokenizer = trainer._tokenizer
    size = min(len(tokenizer), trainer.accelerator.unwrap_model(trainer.model).get_input_embeddings().num_embeddings)
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    return torch.tensor([token for token in range(size) if token not in special] or [0])
