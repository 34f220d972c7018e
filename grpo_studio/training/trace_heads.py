"""What comes after the layers: each backend's own log-probs and loss, forward and backward, on tensors without data."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import torch
from accelerate.utils import convert_outputs_to_fp32
from transformers.modeling_outputs import BaseModelOutputWithPast
from trl.trainer.utils import add_fused_lm_head

from grpo_studio.memory.traced import LOSS_PARTS, TraceRequest
from grpo_studio.training.full_logits import full_token_logps
from grpo_studio.training.liger_loss import TOKEN_SUM_LOSSES, liger_loss
from grpo_studio.training.policy_head import add_policy_head, logit_scale
from grpo_studio.training.trace_lines import Timeline, rows_of
from grpo_studio.training.trace_mode import Timekeeper

LIGER_CHUNK_TOKENS = 2048
LOGITS = LOSS_PARTS[2]
HELD = "held"
UP, BACK = "head", "head, on the way back"
"""Stretches of a pass over the head."""


class _LastHidden(BaseModelOutputWithPast):
    """What the layers give; all else that some architectures' layers give besides is absent."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class Heads:
    """The heads on a model of the meta device, whose layers are left out: they are given the last hidden states.

    Args:
        model: without adapter, on the meta device or of fake tensors; what is frozen has no gradient.
        hidden: the number format of the last hidden states, and whether they carry gradient.
        around: what makes new tensors like the model's.
    """

    def __init__(
        self,
        model: Any,
        hidden: tuple[torch.dtype, bool],
        request: TraceRequest,
        around: AbstractContextManager[Any],
    ) -> None:
        self._model, self._request, self._around = model, request, around
        self._hidden_as = hidden
        weight = model.get_output_embeddings().weight
        self.vocabulary, self._width = weight.shape
        self._device = weight.device
        self._hidden: torch.Tensor | None = None
        add_fused_lm_head(model, temperature=request.temperature, outputs=("log_probs", "entropy"))
        add_policy_head(model)
        model.base_model.forward = self._given_hidden
        if request.autocast:  # as accelerate prepares a model for mixed precision
            model.forward = convert_outputs_to_fp32(model.forward)
        head = model.get_output_embeddings()
        tied = model.get_input_embeddings().weight is weight  # its gradient then waits for that of the embeddings
        self._trained = [one for one in head.parameters() if one.requires_grad and not (tied and one is weight)]

    def loss(self, backend: str, rows: int) -> Timeline:
        """What the head takes on top of the layers, on the way up and on the way back."""
        watch = self._begin(rows, self._hidden_as[1])
        hooks = [one.register_post_accumulate_grad_hook(watch.accumulated) for one in self._trained]
        try:
            with self._around, watch:
                inputs = self._inputs(rows)
                watch.category = LOGITS
                watch.enter([UP])
                loss = self._loss(backend, inputs)
                watch.enter([BACK])
                if loss.requires_grad:
                    loss.backward()
        finally:
            for hook in hooks:  # a tensor's hooks are references that no garbage collector sees
                hook.remove()
            self._end()
        return {name: rows_of(series) for name, series in watch.series.items()}

    def forward(self, backend: str, rows: int) -> Timeline:
        """The same of a pass without gradient."""
        watch = self._begin(rows, False)
        try:
            with self._around, watch, torch.no_grad():
                inputs = self._inputs(rows)
                watch.category = LOGITS
                watch.enter([UP])
                self._logps(backend, inputs, "none")
        finally:
            self._end()
        return {name: rows_of(series) for name, series in watch.series.items()}

    def _begin(self, rows: int, gradient: bool) -> Timekeeper:
        watch = Timekeeper(self._request.device == "cuda", self._request.completion_tokens)
        shape = (rows, self._request.prompt_tokens + self._request.completion_tokens, self._width)
        with self._around:
            self._hidden = torch.empty(shape, dtype=self._hidden_as[0], device=self._device, requires_grad=gradient)
        watch.track(self._model.get_output_embeddings(), self._hidden, category=HELD)
        watch.category = HELD
        return watch

    def _end(self) -> None:
        self._hidden = None
        torch.clear_autocast_cache()
        self._model.zero_grad(set_to_none=True)

    def _given_hidden(self, *args: Any, **kwargs: Any) -> BaseModelOutputWithPast:
        return _LastHidden(last_hidden_state=self._hidden)

    def _inputs(self, rows: int) -> dict[str, torch.Tensor]:
        prompt, completion = (rows, self._request.prompt_tokens), (rows, self._request.completion_tokens)
        with torch.device(self._device):
            inputs = {
                "prompt_ids": torch.ones(prompt, dtype=torch.long),
                "prompt_mask": torch.ones(prompt, dtype=torch.long),
                "completion_ids": torch.ones(completion, dtype=torch.long),
                "completion_mask": torch.ones(completion, dtype=torch.long),
                "advantages": torch.ones(rows),
                "num_items_in_batch": torch.ones((), dtype=torch.long),
            }
            if self._request.old:
                inputs["old_per_token_logps"] = torch.ones(completion)
            if self._request.reference:
                inputs["ref_per_token_logps"] = torch.ones(completion)
        return inputs

    # --- the losses ---

    def _loss(self, backend: str, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """The loss; for full logits and TRL a clipped one, which stands for all: its tensors are one number a token."""
        if backend == "liger":
            return self._liger(inputs)
        logps, entropies = self._logps(backend, inputs, "with gradient" if self._request.entropy else "without")
        ratio = torch.exp(logps - inputs.get("old_per_token_logps", logps.detach()))
        advantages = inputs["advantages"].unsqueeze(1)
        losses = -torch.min(ratio * advantages, torch.clamp(ratio, 0.8, 1.2) * advantages)
        if self._request.reference:
            apart = inputs["ref_per_token_logps"] - logps
            losses = losses + 0.1 * (torch.exp(apart) - apart - 1)
        if self._request.entropy and entropies is not None:
            losses = losses - 0.1 * entropies
        return (losses * inputs["completion_mask"]).sum() / inputs["num_items_in_batch"]

    def _logps(
        self, backend: str, inputs: dict[str, torch.Tensor], entropy: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        count = inputs["completion_ids"].shape[1]
        with self._autocast():
            if backend == "full":
                logps, entropies, _ = full_token_logps(
                    self._model, ids, mask, count, self._request.temperature, entropy=entropy
                )
            else:
                labels = ids.masked_fill(mask == 0, -100)
                labels[:, :-count] = -100
                output = self._model(input_ids=ids, attention_mask=mask, labels=labels, fused_lm_head=True)
                logps = output.log_probs[:, -count:]
                entropies = None if entropy == "none" else output.entropy[:, -count:]
        return torch.cat([logps]), None if entropies is None else torch.cat([entropies])

    def _liger(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        rows = inputs["completion_ids"].shape[0]
        chunk = rows // -(-rows // chunk_rows(self._request))  # as the trainer does
        with self._autocast():
            output = liger_loss(self._model, inputs, self._arguments(), chunk, logit_scale(self._model.config), 1)
        return output["loss"]

    def _arguments(self) -> Any:
        """What Liger's loss reads of GRPOConfig; of these the loss type, its level and beta change what it makes."""
        request = self._request
        return SimpleNamespace(
            temperature=request.temperature, loss_type=request.loss_type,
            importance_sampling_level="token" if request.by_token else "sequence",
            max_completion_length=request.completion_tokens, cast_lm_head_to_fp32=False,
            steps_per_generation=1, beta=0.1 if request.reference else 0.0, epsilon=0.2, epsilon_high=0.2,
            sapo_temperature_pos=1.0, sapo_temperature_neg=1.05, delta=None, use_bias_correction_kl=False,
            vespo_k_pos=2.0, vespo_lambda_pos=3.0, vespo_k_neg=3.0, vespo_lambda_neg=2.0,
        )  # fmt: skip

    def _autocast(self) -> Any:
        return torch.autocast("cpu", torch.bfloat16, enabled=self._request.autocast)


def chunk_rows(request: TraceRequest) -> int:
    """Completions in a chunk of Liger's loss, as `RunConfig.effective_chunk_size`."""
    return request.chunk_size or max(1, LIGER_CHUNK_TOKENS // max(1, request.completion_tokens))


def scaled_again(request: TraceRequest) -> bool:
    """Whether a loss is divided by the accumulation after Liger's head."""
    return request.loss_type not in TOKEN_SUM_LOSSES
