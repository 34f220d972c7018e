"""Score the held-out rows with the present weights and the run's own verifiers: a greedy completion a row, and samples.

Several processes share the rows among them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelerate.utils import gather_object
from trl.models.utils import unwrap_model_for_generation

from grpo_studio.config import RunConfig
from grpo_studio.data import Sample
from grpo_studio.store.records import CompletionRecord, GroupRecord
from grpo_studio.training.completions import complete
from grpo_studio.training.generation import greedy, own_randomness, sampled
from grpo_studio.training.phases import PhaseClock
from grpo_studio.training.rewards import JudgedRewards
from grpo_studio.training.scored_batch import mean_or_none
from grpo_studio.training.scoring_mode import scoring_mode
from grpo_studio.weighted_reward import weighted_reward

BATCH_ROWS = 32
JUDGED_AT_ONCE = 512
"""Sampled completions that are held, and judged, together."""
SHARDED = ("fsdp", "zero3")
"""Strategies in which generating needs all processes at every token."""
GREEDY, SAMPLED = "eval", "eval_sampled"
"""Splits of the recorded groups."""


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
        self._rows = rows
        self._clock = clock
        self._scorer = RowScorer(
            tokenizer,
            judged,
            config,
            tuple(trainer.eos_token_ids),
            dict(trainer.chat_template_kwargs),
            synced=config.scale.strategy in SHARDED,
        )
        self._done_at: set[int] = set()

    def due(self, step: int) -> bool:
        """Whether there are rows, not yet scored after that step."""
        return bool(self._rows) and step not in self._done_at

    def score(self, step: int) -> list[GroupRecord]:
        """On every process: a group of one completion a row, in the order of the rows, then as many of samples."""
        self._done_at.add(step)
        accelerator = self._trainer.accelerator
        rank, processes = accelerator.process_index, accelerator.num_processes
        mine = shares(self._rows, processes)[rank]
        with (
            self._clock.phase("evaluate"),
            unwrap_model_for_generation(
                self._trainer.model_wrapped,
                accelerator,
                gather_deepspeed3_params=self._trainer.args.ds3_gather_for_generation,
                gradient_checkpointing_kwargs=self._trainer.args.gradient_checkpointing_kwargs,
            ) as model,
        ):
            parts = [self._scorer.greedy(model, mine), self._scorer.sampled(model, mine, step, rank)]
            if processes > 1:
                parts = [in_order(gather_object(groups), processes)[: len(self._rows)] for groups in parts]
        return [group for groups in parts for group in groups]


@dataclass(frozen=True)
class RowScorer:
    """Completes rows and scores them, whatever holds the model.

    Args:
        ends: tokens that end a completion.
        template_arguments: go to the chat template.
        synced: processes go on until all are done.
        done: called with the number of completions that were just made.
    """

    tokenizer: Any
    judged: JudgedRewards
    config: RunConfig
    ends: tuple[int, ...]
    template_arguments: Mapping[str, Any]
    synced: bool = False
    done: Callable[[int], None] = lambda count: None

    def greedy(self, model: Any, rows: Sequence[Sample]) -> list[GroupRecord]:
        """One group of one completion a row, in the order of `rows`, split "eval", advantage None."""
        settings = greedy(self.config, self.tokenizer, self.ends)
        return [_group(row, (made,), GREEDY) for row, made in zip(rows, self._made(model, rows, settings), strict=True)]

    def sampled(self, model: Any, rows: Sequence[Sample], step: int, rank: int = 0) -> list[GroupRecord]:
        """`evaluation.samples` completions a row, split "eval_sampled"; none when that is 0.

        They depend on the run's seed, `step` and `rank` alone, and what training draws does not depend on them.
        """
        count = self.config.evaluation.samples
        if count == 0:
            return []
        settings = sampled(self.config, self.tokenizer, self.ends)
        groups = []
        with own_randomness(model.device, self.config.algorithm.seed, step, rank):
            for part in _parts(rows, max(1, JUDGED_AT_ONCE // count)):
                made = self._made(model, [row for row in part for _ in range(count)], settings)
                groups += [
                    _group(row, tuple(made[place * count : (place + 1) * count]), SAMPLED)
                    for place, row in enumerate(part)
                ]
        return groups

    def _made(self, model: Any, rows: Sequence[Sample], settings: Any) -> list[CompletionRecord]:
        completions: list[list[int]] = []
        with scoring_mode(model):
            for part in _parts(rows, BATCH_ROWS):
                completions += complete(model, self.tokenizer, part, settings, self.template_arguments, self.synced)
                self.done(len(part))
        texts = self.tokenizer.batch_decode(completions, skip_special_tokens=True)
        scores = self.judged.score(texts, rows, [len(ids) for ids in completions])
        return [
            CompletionRecord(text, len(ids), not ids or ids[-1] not in self.ends, weighted_reward(row), None, row)
            for text, ids, row in zip(texts, completions, scores, strict=True)
        ]


def shares(rows: Sequence[Sample], processes: int) -> list[list[Sample]]:
    """Rows dealt out in turn, as many for each process; the first row fills up."""
    each = -(-len(rows) // processes)
    filled = [*rows, *[rows[0]] * (each * processes - len(rows))]
    return [filled[rank::processes] for rank in range(processes)]


def in_order(dealt: Sequence[GroupRecord], processes: int) -> list[GroupRecord]:
    """What `shares` dealt out, rank after rank, in the order of the rows again."""
    each = len(dealt) // processes
    return [dealt[rank * each + place] for place in range(each) for rank in range(processes)]


def _group(sample: Sample, made: tuple[CompletionRecord, ...], split: str) -> GroupRecord:
    rewards = [one.reward for one in made if one.reward is not None]
    answer = None if sample.answer is None else str(sample.answer)
    spread = statistics.stdev(rewards) if len(rewards) > 1 else None
    return GroupRecord(sample.question, answer, made, mean_or_none(rewards), spread, split)


def _parts(rows: Sequence[Sample], size: int) -> Iterator[Sequence[Sample]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
