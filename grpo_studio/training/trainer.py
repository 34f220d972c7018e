"""TRL's GRPOTrainer with the hooks that recording needs; the algorithm is TRL's own.

Written for trl 1.16.0: the methods overridden here are private there, so the version is pinned and checked in a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from trl import GRPOTrainer

from grpo_studio.data import Sample
from grpo_studio.training.phases import PhaseClock
from grpo_studio.training.rewards import SAMPLE_COLUMN, JudgedRewards
from grpo_studio.training.scored_batch import ScoredBatch, weighted_reward
from grpo_studio.verifiers import text_of


class StepListener(Protocol):
    """What the trainer tells as it goes."""

    def batch_scored(self, step: int, batch: ScoredBatch) -> None:
        """A generation batch was sampled and scored; `step` is the optimizer step that it is made for."""

    def step_done(self, step: int, logs: dict[str, float | None]) -> None:
        """An optimizer step is done; `logs` holds TRL's metrics of it."""


class StudioTrainer(GRPOTrainer):
    """GRPOTrainer that times its phases and hands every scored batch to a listener.

    A completion on which a verifier of non-zero weight abstained gets no reward: its row is NaN before TRL normalises,
    so TRL leaves it out of the group's mean and deviation and gives it advantage 0.
    """

    def __init__(
        self,
        *args: Any,
        judged: JudgedRewards,
        samples: Sequence[Sample],
        clock: PhaseClock,
        listener: StepListener,
        **kwargs: Any,
    ) -> None:
        self._judged = judged
        self._samples = samples
        self._clock = clock
        self._listener = listener
        self._sampled: tuple[list[Any], list[list[int]]] = ([], [])
        self._policy_logps: torch.Tensor | None = None
        super().__init__(*args, reward_funcs=judged.functions(samples), **kwargs)

    def _generate(self, prompts: list[Any]) -> Any:
        with self._clock.phase("rollout"):
            result = super()._generate(prompts)
        completion_ids, completions = result[1], result[3]
        self._sampled = (completions, completion_ids)
        return result

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> torch.Tensor:
        with self._clock.phase("score"):
            rewards: torch.Tensor = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        abstained = torch.isnan(rewards) & (self.reward_weights.to(rewards.device) != 0)
        rewards[abstained.any(dim=1)] = torch.nan
        return rewards

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        self._listener.batch_scored(self.state.global_step + 1, self._scored_batch(inputs, output["advantages"]))
        return output

    def _scored_batch(self, inputs: list[dict[str, Any]], advantages: torch.Tensor) -> ScoredBatch:
        completions, token_ids = self._sampled
        samples = [self._samples[row[SAMPLE_COLUMN]] for row in inputs]
        scores = self._judged.latest()
        ends = {*self.eos_token_ids, self._tokenizer.pad_token_id}
        return ScoredBatch(
            prompts=[sample.question for sample in samples],
            answers=[None if sample.answer is None else str(sample.answer) for sample in samples],
            texts=[text_of(completion) for completion in completions],
            tokens=[len(ids) for ids in token_ids],
            truncated=[not ids or ids[-1] not in ends for ids in token_ids],
            rewards=[weighted_reward(row) for row in scores],
            advantages=advantages.tolist(),
            scores=scores,
            group_size=self.num_generations,
        )

    def _get_per_token_logps_and_entropies(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        if model is self.ref_model:
            with self._clock.phase("reference"):
                return super()._get_per_token_logps_and_entropies(model, *args, **kwargs)
        result = super()._get_per_token_logps_and_entropies(model, *args, **kwargs)
        self._policy_logps = result[0].detach()
        return result

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        loss: torch.Tensor = super()._compute_loss(model, inputs)
        self._metrics["train"]["ratio_mean"].append(self._ratio_mean(inputs))
        return loss

    def _ratio_mean(self, inputs: dict[str, Any]) -> float:
        """Mean of exp(log pi - log pi_old) over completion tokens; 1 when these very weights sampled the batch."""
        old = inputs.get("old_per_token_logps")
        if old is None or self._policy_logps is None:
            return 1.0
        mask = inputs["completion_mask"]
        ratio = torch.exp(self._policy_logps - old) * mask
        return float(ratio.sum() / mask.sum().clamp(min=1))

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any) -> torch.Tensor:
        with self._clock.phase("loss"):
            result: torch.Tensor = super().training_step(model, inputs, num_items_in_batch)
        return result

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        with self._clock.phase("save"):
            super()._save_checkpoint(model, trial)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        super().log(logs, start_time)
        if "loss" in logs:
            self._listener.step_done(self.state.global_step, dict(logs))
