"""Puts what the trainer tells into the run's database: groups once they are scored, the rest when a step is done."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from grpo_studio.evaluation_passing import PassRule
from grpo_studio.store.records import GroupRecord
from grpo_studio.store.writer import RunWriter
from grpo_studio.training.memory_watch import MemoryWatch, Taken, gathered
from grpo_studio.training.phases import PhaseClock
from grpo_studio.training.scored_batch import ScoredBatch, batch_metrics, evaluation_metrics
from grpo_studio.training.verifier_faults import AbstentionWatch, FirstTroubles

FROM_TRL = {
    "loss": "optim/loss",
    "grad_norm": "optim/grad_norm",
    "learning_rate": "optim/lr",
    "sampling/sampling_logp_difference/mean": "policy/sampler_difference",
    "sampling/sampling_logp_difference/max": "policy/sampler_difference_max",
    "sampling/importance_sampling_ratio/mean": "policy/sampler_ratio_mean",
    "entropy_coef": "policy/entropy_coef",
    "aux_loss": "optim/router_loss",
}
NOT_PART_OF_A_STEP = ("evaluate", "save")


class Recorder:
    """A `StepListener` that writes. One a run, used on the main thread."""

    def __init__(
        self,
        writer: RunWriter,
        clock: PhaseClock,
        memory: MemoryWatch,
        abstentions: AbstentionWatch,
        masks_truncated: bool = False,
        passes: PassRule | None = None,
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._memory = memory
        self._masks_truncated = masks_truncated
        self._passes = passes
        self._tokens = 0
        self._abstentions = abstentions
        self._troubles = FirstTroubles(writer)
        self.scores: dict[int, float | None] = {}
        """Held-out reward by step, of the rows that were scored."""
        self.baseline: Mapping[str, float | None] = {}
        """Metrics of the evaluation before training."""
        memory.step = 1

    def state(self) -> dict[str, Any]:
        """What a later attempt of this run has to know to go on counting."""
        return {"abstentions": self._abstentions.state(), "troubles": self._troubles.state()}

    def restore(self, step: int, state: Mapping[str, Any]) -> None:
        """Go on after `step`; what `state` does not hold begins anew."""
        self._memory.step = step + 1
        if "abstentions" in state:
            self._abstentions.restore(state["abstentions"])
        if "troubles" in state:
            self._troubles.restore(state["troubles"])

    def batch_scored(self, step: int, batch: ScoredBatch) -> None:
        """Record the groups of a generation batch, so that they can be read while the update still runs."""
        groups = batch.groups()
        self._tokens += batch.tokens
        self._abstentions.add(groups)
        with self._writer.transaction():
            self._writer.groups(step, groups)
            self._writer.metrics(step, batch_metrics(groups, self._masks_truncated))
            self._troubles.tell(step, groups)

    def step_done(self, step: int, logs: Mapping[str, Any]) -> None:
        """Record what an optimizer step gave: TRL's metrics and those named policy/..., times, memory."""
        metrics = {ours: logs[theirs] for theirs, ours in FROM_TRL.items() if logs.get(theirs) is not None}
        metrics |= {name: value for name, value in logs.items() if name.startswith("policy/")}
        seconds = self._clock.take()
        memory = gathered(self._memory.take())
        step_seconds = sum(value for phase, value in seconds.items() if phase not in NOT_PART_OF_A_STEP)
        metrics |= {f"time/{phase}": value for phase, value in seconds.items()}
        metrics |= _memory_metrics(memory)
        metrics["time/step"] = step_seconds
        if self._tokens:
            metrics["throughput/completion_tokens_per_s"] = self._tokens / max(step_seconds, 1e-9)
        self._tokens = 0
        self._memory.step_done(step)
        with self._writer.transaction():
            self._writer.metrics(step, metrics)
            self._writer.phase_times(step, seconds)
            self._writer.memory_samples(memory.samples)
            self._tell_non_finite(step, metrics)

    def aside_done(self, step: int) -> None:
        """Record the time of evaluation and saving that lay outside the steps: before the first or after the last."""
        seconds = self._clock.take(NOT_PART_OF_A_STEP)
        memory = gathered(self._memory.take())
        metrics = {f"time/{phase}": value for phase, value in seconds.items()}
        metrics |= _memory_metrics(memory, only=seconds)
        with self._writer.transaction():
            self._writer.metrics(step, metrics)
            self._writer.phase_times(step, seconds)
            self._writer.memory_samples(replace(sample, step=step) for sample in memory.samples)

    def checkpoint_saved(self, step: int) -> None:
        """Record that a checkpoint lies on the disk, and what it took."""
        self.aside_done(step)
        data = {"step": step, "score": self.scores.get(step)}
        self._writer.event("checkpoint_saved", f"checkpoint-{step} saved", data=data)

    def warned(self, kind: str, message: str, values: Mapping[str, float]) -> None:
        """Record a warning of the engine with its figures."""
        self._writer.event(kind, message, level="warning", data=values)

    def evaluated(self, step: int, groups: Sequence[GroupRecord]) -> dict[str, float | None]:
        """Record scored held-out rows; returns their metrics."""
        metrics = evaluation_metrics(groups, self._passes)
        rows = sum(group.split == "eval" for group in groups)
        means = ", ".join(
            f"{name.removeprefix('eval/')} {value:.3g}"
            for name, value in metrics.items()
            if value is not None and not (value == 0 and name.endswith("/abstained"))
        )
        with self._writer.transaction():
            self._writer.groups(step, groups)
            self._writer.metrics(step, metrics)
            self._troubles.tell(step, groups)
            self._writer.event("evaluation", f"{rows} held-out rows after step {step}: {means}", data=metrics)
        self.scores[step] = metrics.get("eval/reward")
        return metrics

    def _tell_non_finite(self, step: int, metrics: Mapping[str, float]) -> None:
        wrong = [name for name, value in metrics.items() if not math.isfinite(value)]
        if wrong:
            self._writer.event("non_finite", f"step {step}: not a finite number: {', '.join(wrong)}", level="error")


def _memory_metrics(memory: Taken, only: Collection[str] | None = None) -> dict[str, float]:
    """Peaks by phase, with `only` of those phases, and what others had on the card where that is known."""
    peaks = {phase: value for phase, value in memory.peaks.items() if only is None or phase in only}
    metrics = {f"memory/peak/{phase}": float(value) for phase, value in peaks.items()}
    return metrics if memory.others is None else metrics | {"memory/others": float(memory.others)}
