"""The policy loss by Liger's fused linear GRPO: log-probs, loss and gradients of the head in chunks, no whole logits.

Written for liger-kernel 0.8.5 (`liger_kernel.chunked_loss.LigerFusedLinearGRPOLoss`) and the normalisation of trl
1.16.0; that both agree is proved by tests/integration/test_loss_parity.py.
"""

from __future__ import annotations

from typing import Any

import torch
from liger_kernel.chunked_loss import LigerFusedLinearGRPOLoss
from trl import GRPOConfig

from grpo_studio.training.policy_head import WholeHead, token_statistics

TOKEN_SUM_LOSSES = ("dapo", "cispo", "vespo")
"""Loss types that TRL divides by the tokens of the whole generation batch, not by the accumulation."""


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
    fused = _fused_loss(args, chunk_size, temperature, compiled=inputs["completion_ids"].is_cuda)
    ids, mask = inputs["completion_ids"], inputs["completion_mask"]

    def head(hidden: torch.Tensor, lm_head: Any) -> dict[str, torch.Tensor]:
        hidden = hidden[:, -ids.shape[1] - 1 : -1]
        if args.cast_lm_head_to_fp32:
            hidden = hidden.float()
        with WholeHead(lm_head) as (weight, bias), torch.autocast(hidden.device.type, enabled=False):
            # First, so that its tiles are gone before the head's gradients are there.
            logps, entropies = token_statistics(hidden.detach(), weight, bias, ids, mask, temperature)
            loss, _ = fused(
                hidden,
                weight,
                ids,
                mask,
                inputs["advantages"],
                bias=bias,
                ref_per_token_logps=inputs.get("ref_per_token_logps"),
                old_per_token_logps=inputs.get("old_per_token_logps"),
                vllm_is_ratio=inputs.get("importance_sampling_ratio"),
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


def _fused_loss(args: GRPOConfig, chunk_size: int, temperature: float, compiled: bool) -> LigerFusedLinearGRPOLoss:
    """Liger's loss with TRL's settings; its own defaults differ."""
    return LigerFusedLinearGRPOLoss(
        beta=args.beta,
        compiled=compiled,
        use_ref_model=args.beta != 0.0,
        chunk_size=chunk_size,
        epsilon_low=args.epsilon,
        epsilon_high=args.epsilon if args.epsilon_high is None else args.epsilon_high,
        loss_type=args.loss_type,
        max_completion_length=args.max_completion_length,
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
