"""The policy loss by Liger's fused linear GRPO: log-probs, loss and gradients of the head in chunks, no whole logits.

Written for liger-kernel 0.8.5 (`liger_kernel.chunked_loss.LigerFusedLinearGRPOLoss`) and the normalisation of trl
1.16.0; that both agree is proved by tests/integration/test_loss_parity.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from liger_kernel.chunked_loss import LigerFusedLinearGRPOLoss
from trl import GRPOConfig

from grpo_studio.training.policy_head import WholeHead, token_statistics

TOKEN_SUM_LOSSES = ("dapo", "cispo", "vespo")
"""Loss types that TRL divides by the tokens of the whole generation batch, not by the accumulation."""
TOKENS_ALONE = ("dapo", "cispo", "bnpo", "dr_grpo")
"""Loss types in which, with a ratio per token, tokens do not know of each other: the head then leaves padding out."""


def liger_loss(
    model: Any, inputs: dict[str, Any], args: GRPOConfig, chunk_size: int, logit_scale: float, accumulation: int
) -> dict[str, torch.Tensor]:
    """Loss of one micro-batch as TRL scales it, with gradient, and its tokens' statistics, without.

    Args:
        model: the policy as wrapped for training, with a policy head (`policy_head.add_policy_head`).
        inputs: TRL's micro-batch; shapes (B, P) for the prompt's tensors, (B, C) for the completions', (B,) advantages.
        chunk_size: completions a chunk.
        logit_scale: what the model multiplies its logits by.
        accumulation: micro-batches in this optimizer step.

    Returns:
        `loss` (scalar), `logps` and `entropies` (B, C).
    """
    temperature = args.temperature / logit_scale
    ids, mask = inputs["completion_ids"], inputs["completion_mask"]
    by_token = args.loss_type in TOKENS_ALONE and args.importance_sampling_level == "token" and bool(mask.any())
    scored = _tokens_alone(inputs) if by_token else _Scored.of(inputs)
    fused = _fused_loss(
        args,
        chunk_size * ids.shape[1] if by_token else chunk_size,
        temperature,
        length=args.max_completion_length * ids.shape[0] / scored.ids.shape[0],
        compiled=ids.is_cuda,
    )

    def head(hidden: torch.Tensor, lm_head: Any) -> dict[str, torch.Tensor]:
        hidden = hidden[:, -ids.shape[1] - 1 : -1]
        device = hidden.device.type
        autocast = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
        with WholeHead(lm_head) as (weight, bias), torch.autocast(device, enabled=False):
            # A last layer norm may give float32 under autocast; the head computes as TRL's does.
            hidden = hidden.to(torch.float32 if args.cast_lm_head_to_fp32 else autocast or weight.dtype)
            # First, so that its tiles are gone before the head's gradients are there.
            logps, entropies = token_statistics(hidden.detach(), weight, bias, ids, mask, temperature)
            loss, _ = fused(
                hidden[mask.bool()].unsqueeze(1) if by_token else hidden,
                weight,
                scored.ids,
                scored.mask,
                scored.advantages,
                bias=bias,
                ref_per_token_logps=scored.reference,
                old_per_token_logps=scored.old,
                vllm_is_ratio=scored.ratio,
                num_items_in_batch=inputs["num_items_in_batch"] * accumulation / args.steps_per_generation,
            )
        return {"loss": loss, "logps": logps, "entropies": entropies}

    output: dict[str, torch.Tensor] = model(
        input_ids=torch.cat([inputs["prompt_ids"], ids], dim=1),
        attention_mask=torch.cat([inputs["prompt_mask"], mask], dim=1),
        policy_head=head,
    )
    if args.loss_type not in TOKEN_SUM_LOSSES:
        output["loss"] = output["loss"] / accumulation
    return output


@dataclass(frozen=True)
class _Scored:
    """What Liger is told of (B, C) tokens; `advantages` (B,), `ratio` (B, C) or (B, 1)."""

    ids: torch.Tensor
    mask: torch.Tensor
    advantages: torch.Tensor
    old: torch.Tensor | None
    reference: torch.Tensor | None
    ratio: torch.Tensor | None

    @classmethod
    def of(cls, inputs: dict[str, Any]) -> _Scored:
        return cls(
            inputs["completion_ids"],
            inputs["completion_mask"],
            inputs["advantages"],
            inputs.get("old_per_token_logps"),
            inputs.get("ref_per_token_logps"),
            inputs.get("importance_sampling_ratio"),
        )


def _tokens_alone(inputs: dict[str, Any]) -> _Scored:
    """Each token that the mask keeps as a completion of its own, (N, 1)."""
    whole = _Scored.of(inputs)
    kept = whole.mask.bool()

    def each(value: torch.Tensor | None) -> torch.Tensor | None:
        return None if value is None else value.expand(kept.shape)[kept].unsqueeze(1)

    return _Scored(
        whole.ids[kept].unsqueeze(1),
        whole.mask[kept].unsqueeze(1),
        whole.advantages.unsqueeze(1).expand(kept.shape)[kept],
        each(whole.old),
        each(whole.reference),
        each(whole.ratio),
    )


def _fused_loss(
    args: GRPOConfig, chunk_size: int, temperature: float, length: float, compiled: bool
) -> LigerFusedLinearGRPOLoss:
    """Liger's loss with TRL's settings; its own defaults differ. `length` times the rows is what divides dr_grpo."""
    return LigerFusedLinearGRPOLoss(
        beta=args.beta,
        compiled=compiled,
        use_ref_model=args.beta != 0.0,
        chunk_size=chunk_size,
        epsilon_low=args.epsilon,
        epsilon_high=args.epsilon_high,
        loss_type=args.loss_type,
        max_completion_length=length,
        importance_sampling_level=args.importance_sampling_level,
        sapo_temperature_pos=args.sapo_temperature_pos,
        sapo_temperature_neg=args.sapo_temperature_neg,
        temperature=temperature,
        delta=args.delta,
        use_bias_correction_kl=args.use_bias_correction_kl,
        vespo_k_pos=args.vespo_k_pos,
        vespo_lambda_pos=args.vespo_lambda_pos,
        vespo_k_neg=args.vespo_k_neg,
        vespo_lambda_neg=args.vespo_lambda_neg,
    )
