"""The real trainer for a probe: built as a session builds it, fed with a frozen batch instead of sampling one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers.trainer_utils import set_seed
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import use_adapter

from grpo_studio.config import RewardSettings, RunConfig
from grpo_studio.data import Sample
from grpo_studio.training.adapters import adapter_arguments
from grpo_studio.training.arguments import grpo_arguments
from grpo_studio.training.phases import PhaseClock
from grpo_studio.training.precision import effective_dtype
from grpo_studio.training.probe_batch import Batch
from grpo_studio.training.rewards import SAMPLE_COLUMN, JudgedRewards
from grpo_studio.training.scored_batch import ScoredBatch
from grpo_studio.training.tokenization import load_tokenizer, prompt_for
from grpo_studio.training.trainer import StudioTrainer


class Listening:
    """Keeps the newest scored batch."""

    def __init__(self) -> None:
        self.batch: ScoredBatch | None = None

    def batch_scored(self, step: int, batch: ScoredBatch) -> None:
        self.batch = batch

    def step_done(self, step: int, logs: Mapping[str, float]) -> None:
        """Nothing is logged: no step is taken by the training loop."""


class ProbeTrainer(StudioTrainer):
    """A trainer that is ready for steps without its loop; its micro-batches are given as they are."""

    frozen = False
    optimizer: Any

    def ready(self) -> Any:
        """The model as wrapped for training, with the optimizer made; what `train` does before its first step."""
        if self.args.gradient_checkpointing:
            self.model.gradient_checkpointing_enable(self.args.gradient_checkpointing_kwargs)
        self.create_optimizer()
        self.model_wrapped, self.optimizer = self.accelerator.prepare(self.model, self.optimizer)
        self.model_wrapped.train()
        return self.model_wrapped

    def _prepare_inputs(self, inputs: Any) -> Any:
        return inputs if self.frozen else super()._prepare_inputs(inputs)

    def forget(self) -> None:
        """Drop what a step's end would log."""
        self._metrics["train"].clear()
        self._tally.take(self.accelerator)

    def pass_without_gradient(self, batch: Batch, rows: int) -> bool:
        """What TRL scores beside the policy, `rows` completions at a time: old log-probs, the reference's.

        Returns whether this batch has either; what comes of it is dropped.
        """
        old, reference = "old_per_token_logps" in batch, "ref_per_token_logps" in batch
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        asked = (ids, mask, batch["completion_ids"].shape[1], rows)
        with torch.no_grad(), disable_gradient_checkpointing(self.model, self.args.gradient_checkpointing_kwargs):
            if old:
                self._get_per_token_logps_and_entropies(self.model, *asked)
            if reference and self.ref_model is not None:
                self._get_per_token_logps_and_entropies(self.ref_model, *asked)
            elif reference:
                policy = self.accelerator.unwrap_model(self.model)
                with use_adapter(policy, adapter_name="ref" if "ref" in policy.peft_config else None):
                    self._get_per_token_logps_and_entropies(self.model, *asked)
        return old or reference


def probe_trainer(
    config: RunConfig,
    source: str,
    output_dir: Path,
    judged: JudgedRewards | None = None,
    samples: Sequence[Sample] = (),
    tokenizer: Any = None,
) -> tuple[ProbeTrainer, Listening]:
    """The trainer of a session of these settings, from the same seed; without `samples` it cannot sample."""
    arguments = grpo_arguments(config, output_dir)
    set_seed(arguments.seed)
    tokenizer = tokenizer or load_tokenizer(source, config.model.revision, config.model.chat_template)
    listening = Listening()
    trainer = ProbeTrainer(
        model=source,
        args=arguments,
        train_dataset=_rows(tokenizer, samples) if samples else _no_rows(config),
        processing_class=tokenizer,
        config=config,
        judged=_NothingJudged(config.rewards) if judged is None else judged,
        samples=samples,
        clock=PhaseClock(),
        listener=listening,
        **adapter_arguments(config.memory, effective_dtype(config.model)),
    )
    trainer.current_gradient_accumulation_steps = arguments.gradient_accumulation_steps
    return trainer, listening


def _rows(tokenizer: Any, samples: Sequence[Sample]) -> Dataset:
    prompts = [prompt_for(tokenizer, sample.messages) for sample in samples]
    return Dataset.from_dict({"prompt": prompts, SAMPLE_COLUMN: list(range(len(samples)))})


def _no_rows(config: RunConfig) -> Dataset:
    count = config.algorithm.prompts_per_step
    return Dataset.from_dict({"prompt": ["frozen"] * count, SAMPLE_COLUMN: [0] * count})


class _NothingJudged(JudgedRewards):
    """Stands where a trainer wants rewards that it will never ask for: the batch is scored already."""

    def __init__(self, rewards: Sequence[RewardSettings]) -> None:
        self.rewards = tuple(rewards)

    def functions(self, samples: Sequence[Sample]) -> list[Callable[..., Any]]:
        def scored_before(completions: Any, **columns: Any) -> Any:
            raise TypeError("the batch of a probe is frozen and scored")

        return [scored_before] * len(self.rewards)
