"""TRL's GRPOTrainer with three loss backends and the hooks that recording needs; the algorithm is TRL's own.

Written for trl 1.16.0: the methods overridden here are private there, so the version is pinned and checked in a test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import torch
from accelerate.utils import gather_object

from grpo_studio.config import RunConfig
from grpo_studio.data import Sample
from grpo_studio.errors import ConfigError
from grpo_studio.training.adapters import adapter_is_off
from grpo_studio.training.dead_groups import DeadStepCallback, thin, whole, without_rounding
from grpo_studio.training.full_logits import full_token_logps
from grpo_studio.training.liger_loss import liger_loss
from grpo_studio.training.phases import PhaseClock
from grpo_studio.training.policy_head import add_policy_head, logit_scale
from grpo_studio.training.policy_metrics import PolicyTally
from grpo_studio.training.resuming import ResumableTrainer
from grpo_studio.training.rewards import SAMPLE_COLUMN, JudgedRewards
from grpo_studio.training.scored_batch import ScoredBatch, ScoredCompletion
from grpo_studio.training.tokenization import stop_at_end_token
from grpo_studio.verifiers import text_of
from grpo_studio.weighted_reward import weighted_reward

if TYPE_CHECKING:
    from grpo_studio.training.sync_canary import SyncCanary


class StepListener(Protocol):
    """What the trainer tells as it goes."""

    def batch_scored(self, step: int, batch: ScoredBatch) -> None:
        """A generation batch was sampled and scored; `step` is the optimizer step that it is made for."""

    def step_done(self, step: int, logs: Mapping[str, float]) -> None:
        """An optimizer step is done; `logs` holds its metrics: ours by their recorded names, the others by TRL's."""


class StudioTrainer(ResumableTrainer):
    """TRL's trainer that computes its loss by the backend of `config`, skips dead groups, times its phases and hands
    every scored batch to a listener.

    A completion on which a verifier of non-zero weight abstained gets no reward: its row is NaN before TRL normalises,
    so TRL leaves it out of the group's mean and deviation and gives it advantage 0.

    Raises:
        ModelError, ConfigError: the model cannot be trained with these settings.
    """

    def __init__(
        self,
        *args: Any,
        config: RunConfig,
        judged: JudgedRewards,
        samples: Sequence[Sample],
        clock: PhaseClock,
        listener: StepListener,
        **kwargs: Any,
    ) -> None:
        self._config = config
        self._judged = judged
        self._samples = samples
        self._clock = clock
        self._listener = listener
        self._sampled: tuple[list[Any], list[list[int]]] = ([], [])
        self._rewards = torch.empty(0)
        self._policy_tokens: tuple[torch.Tensor, torch.Tensor] | None = None
        self._tally = PolicyTally()
        self._alive = 0
        self._canary: SyncCanary | None = None
        self.live_steps = 0
        self.stopped = False
        self.paused: str | None = None
        stop_at_end_token(kwargs["args"], config, kwargs["processing_class"])
        super().__init__(*args, reward_funcs=judged.functions(samples), **kwargs)
        self.skips_dead = self._may_skip_dead()
        self.add_callback(DeadStepCallback(self.model, self._nothing_to_learn))
        if self._backend == "liger":
            self._prepare_liger()

    @property
    def _backend(self) -> str:
        return self._config.memory.loss_backend

    def _may_skip_dead(self) -> bool:
        wanted = self._config.effective_skip_dead_groups()
        if wanted and self.aux_loss_enabled:
            if self._config.memory.skip_dead_groups:
                raise ConfigError(
                    "memory.skip_dead_groups is true, but this mixture of experts has a router loss over all tokens; "
                    "leave it empty, or set algorithm.extra to {router_aux_loss_coef: 0}"
                )
            return False
        return wanted

    def _prepare_liger(self) -> None:
        if self.aux_loss_enabled:
            raise ConfigError(
                "Liger's loss has no router loss, and this mixture of experts has one; use memory.loss_backend=trl, "
                "or set algorithm.extra to {router_aux_loss_coef: 0}"
            )
        model = self.accelerator.unwrap_model(self.model)
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        self._logit_scale = logit_scale(base.config)
        add_policy_head(base)

    # --- rollouts and rewards ---

    def _generate(self, prompts: list[Any]) -> Any:
        with self._clock.phase("rollout"):
            result = super()._generate(prompts)
        completion_ids, completions = result[1], result[3]
        self._sampled = (completions, completion_ids)
        return result

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> torch.Tensor:
        with self._clock.phase("score"):
            rewards: torch.Tensor = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        weights = self.reward_weights.to(rewards.device)
        abstained = torch.isnan(rewards) & (weights != 0)
        rewards[abstained.any(dim=1)] = torch.nan
        if self.multi_objective_aggregation == "sum_then_normalize":
            total = (rewards * weights).nansum(dim=1).masked_fill(abstained.any(dim=1), torch.nan)
            self._rewards = total.unsqueeze(1)
        else:
            self._rewards = rewards[:, weights != 0]
        return rewards

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        start = self.accelerator.process_index * len(inputs)
        exact = without_rounding(torch.ones_like(self._rewards[:, 0]), self._rewards, self.num_generations)
        output["advantages"] = output["advantages"] * exact[start : start + len(inputs)]
        self._listener.batch_scored(self.state.global_step + 1, self._scored_batch(inputs, output["advantages"]))
        return output

    def _scored_batch(self, inputs: list[dict[str, Any]], advantages: torch.Tensor) -> ScoredBatch:
        """The batch of all processes, in the order of the ranks, which is that of the prompts."""
        completions, token_ids = self._sampled
        scores = self._judged.latest()
        ends = {*self.eos_token_ids, self._tokenizer.pad_token_id}
        rows = [
            ScoredCompletion(
                prompt=sample.question,
                answer=None if sample.answer is None else str(sample.answer),
                text=text_of(completion),
                tokens=len(ids),
                truncated=not ids or ids[-1] not in ends,
                reward=weighted_reward(score),
                advantage=advantage,
                scores=score,
            )
            for sample, completion, ids, advantage, score in zip(
                [self._samples[row[SAMPLE_COLUMN]] for row in inputs],
                completions,
                token_ids,
                advantages.tolist(),
                scores,
                strict=True,
            )
        ]
        if self.accelerator.num_processes > 1:
            rows = gather_object(rows)
        return ScoredBatch(rows, self.num_generations)

    # --- the loss ---

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        **images: Any,
    ) -> Any:
        of_reference = model is self.ref_model or adapter_is_off(model)
        with self._clock.phase("reference") if of_reference else nullcontext():
            if self._backend == "full":
                result = self._full(
                    model, input_ids, attention_mask, logits_to_keep, batch_size, compute_entropy, compute_aux_loss
                )
            else:
                result = super()._get_per_token_logps_and_entropies(
                    model,
                    input_ids,
                    attention_mask,
                    logits_to_keep,
                    batch_size=batch_size,
                    compute_entropy=compute_entropy,
                    compute_aux_loss=compute_aux_loss,
                    **images,
                )
        if compute_entropy:
            self._policy_tokens = (result[0], result[1])
        return result

    def _full(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        count: int,
        batch_size: int | None,
        entropy: bool,
        router_loss: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        with_gradient = self._entropy_bonus_enabled or self.top_entropy_quantile < 1.0
        size = batch_size or input_ids.shape[0]
        parts = []
        for start in range(0, input_ids.shape[0], size):
            rows = slice(start, start + size)
            with self.accelerator.autocast():
                parts.append(
                    full_token_logps(
                        model,
                        input_ids[rows],
                        attention_mask[rows],
                        count,
                        self.temperature,
                        entropy="with gradient" if entropy and with_gradient else "without" if entropy else "none",
                        router_loss=router_loss,
                    )
                )
        logps, entropies, router = zip(*parts, strict=True)
        return (
            torch.cat(logps),
            torch.cat(entropies) if entropy else None,
            torch.stack(router).mean() if router_loss else None,
        )

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        thinned = thin(inputs, self.loss_type, self.accelerator) if self.skips_dead else whole(inputs)
        inputs = thinned.inputs
        self._alive += thinned.alive
        loss = self._liger(model, inputs) if self._backend == "liger" else super()._compute_loss(model, inputs)
        if thinned.alive and self._policy_tokens is not None:
            self._tally.add(self.args, inputs, *self._policy_tokens)
        self._policy_tokens = None
        return loss * thinned.share

    def _liger(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        accumulation = self.current_gradient_accumulation_steps
        rows, width = inputs["completion_ids"].shape
        chunk = rows // -(-rows // self._config.effective_chunk_size(width))  # Liger rounds the number of chunks down
        with self.accelerator.autocast():
            output = liger_loss(model, inputs, self.args, chunk, self._logit_scale, accumulation)
        self._policy_tokens = (output["logps"], output["entropies"])
        return output["loss"]

    # --- steps ---

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any) -> torch.Tensor:
        with self._clock.phase("loss"):
            result: torch.Tensor = super().training_step(model, inputs, num_items_in_batch)
        return result

    def _nothing_to_learn(self) -> bool:
        """Whether no completion of the step that ends carries gradient, on any process; begins to count anew."""
        dead = self._alive == 0
        self._alive = 0
        self.live_steps += not dead
        return dead

    def watch_sync(self, tokenizer: Any, tell: Callable[[str, str, dict[str, float]], None]) -> None:
        """Time the weight syncs to the vLLM engine and compare engine and trainer after them."""
        from grpo_studio.training.sync_canary import SyncCanary

        self._canary = SyncCanary(self, tokenizer, self._config.rollout, tell)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        with self._clock.phase("save"):
            super()._save_checkpoint(model, trial)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "loss" in logs:  # first, so that trackers get them, too
            logs |= self._tally.take(self.accelerator) | (self._canary.take() if self._canary else {})
        super().log(logs, start_time)
        if "loss" in logs:
            self._listener.step_done(self.state.global_step, logs)
