"""Score the held-out rows with the present weights: one greedy completion a row, the run's own verifiers.

Several processes share the rows among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accelerate.utils import gather_object
from transformers import GenerationConfig
from trl.models.utils import unwrap_model_for_generation

from grpo_studio.config import RunConfig
from grpo_studio.data import Sample
from grpo_studio.store.records import CompletionRecord, GroupRecord
from grpo_studio.training.completions import complete
from grpo_studio.training.phases import PhaseClock
from grpo_studio.training.rewards import JudgedRewards
from grpo_studio.training.scoring_mode import scoring_mode
from grpo_studio.weighted_reward import weighted_reward

BATCH_ROWS = 32
SHARDED = ("fsdp", "zero3")
"""Strategies in which generating needs all processes at every token."""


class HeldOut:
    """The held-out rows of a run and what it takes to score them; each step once."""

    def __init__(
        self,
        trainer: Any,
        tokenizer: Any,
        rows: Sequence[Sample],
        judged: JudgedRewards,
        config: RunConfig,
        clock: PhaseClock,
    ) -> None:
        self._trainer = trainer
        self._tokenizer = tokenizer
        self._rows = rows
        self._judged = judged
        self._config = config
        self._clock = clock
        self._done_at: set[int] = set()

    def due(self, step: int) -> bool:
        """Whether there are rows, not yet scored after that step."""
        return bool(self._rows) and step not in self._done_at

    def score(self, step: int) -> list[GroupRecord]:
        """One group of one completion a row, in the order of the rows, on every process."""
        self._done_at.add(step)
        accelerator = self._trainer.accelerator
        mine = shares(self._rows, accelerator.num_processes)[accelerator.process_index]
        with (
            self._clock.phase("evaluate"),
            unwrap_model_for_generation(
                self._trainer.model_wrapped,
                accelerator,
                gather_deepspeed3_params=self._trainer.args.ds3_gather_for_generation,
                gradient_checkpointing_kwargs=self._trainer.args.gradient_checkpointing_kwargs,
            ) as model,
        ):
            groups = evaluate(
                model,
                self._tokenizer,
                mine,
                self._judged,
                self._generation(),
                dict(self._trainer.chat_template_kwargs),
                synced=self._config.scale.strategy in SHARDED,
            )
            if accelerator.num_processes > 1:
                groups = in_order(gather_object(groups), accelerator.num_processes)[: len(self._rows)]
        return groups

    def _generation(self) -> GenerationConfig:
        return GenerationConfig(
            do_sample=False,
            max_new_tokens=self._config.algorithm.max_completion_length,
            repetition_penalty=self._trainer.repetition_penalty,
            eos_token_id=list(self._trainer.eos_token_ids),
            pad_token_id=self._tokenizer.pad_token_id,
            bos_token_id=self._tokenizer.bos_token_id,
        )


def shares(rows: Sequence[Sample], processes: int) -> list[list[Sample]]:
    """Rows dealt out in turn, as many for each process; the first row fills up."""
    each = -(-len(rows) // processes)
    filled = [*rows, *[rows[0]] * (each * processes - len(rows))]
    return [filled[rank::processes] for rank in range(processes)]


def in_order(dealt: Sequence[GroupRecord], processes: int) -> list[GroupRecord]:
    """What `shares` dealt out, rank after rank, in the order of the rows again."""
    each = len(dealt) // processes
    return [dealt[rank * each + place] for place in range(each) for rank in range(processes)]


def evaluate(
    model: Any,
    tokenizer: Any,
    samples: Sequence[Sample],
    judged: JudgedRewards,
    generation: GenerationConfig,
    template_arguments: Mapping[str, Any],
    synced: bool = False,
) -> list[GroupRecord]:
    """Complete each row and score it; with `synced` processes go on until all are done.

    Returns:
        One group of one completion a row, in the order of `samples`, split "eval", advantage None.
    """
    with scoring_mode(model):
        completions = [
            ids
            for rows in _batches(samples)
            for ids in complete(model, tokenizer, rows, generation, template_arguments, synced)
        ]
    texts = tokenizer.batch_decode(completions, skip_special_tokens=True)
    scores = judged.score(texts, samples, [len(ids) for ids in completions])
    ends = generation.eos_token_id
    return [
        _group(sample, text, ids, row, truncated=not ids or ids[-1] not in ends)
        for sample, text, ids, row in zip(samples, texts, completions, scores, strict=True)
    ]


def _group(sample: Sample, text: str, ids: Sequence[int], scores: Any, truncated: bool) -> GroupRecord:
    reward = weighted_reward(scores)
    completion = CompletionRecord(text, len(ids), truncated, reward, None, scores)
    answer = None if sample.answer is None else str(sample.answer)
    return GroupRecord(sample.question, answer, (completion,), reward, None, split="eval")


def _batches(samples: Sequence[Sample]) -> Iterator[Sequence[Sample]]:
    for start in range(0, len(samples), BATCH_ROWS):
        yield samples[start : start + BATCH_ROWS]
