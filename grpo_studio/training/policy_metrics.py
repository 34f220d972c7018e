"""What the update did to the policy, from the tokens' log-probs: the same sums for every loss backend.

Over the tokens of an optimizer step that were in the update, on all processes; clip fractions and the ratio are over
sequences where the ratio is one of sequences.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from trl import GRPOConfig, GRPOTrainer

from grpo_studio.algorithm_settings import CLIPPED_LOSSES

NAMES = (
    "policy/entropy",
    "policy/kl",
    "policy/ratio_mean",
    "policy/clip_low",
    "policy/clip_high",
    "policy/vespo_weight_mean",
)


class PolicyTally:
    """Sums of one optimizer step, micro-batch by micro-batch; `take` ends the step."""

    def __init__(self) -> None:
        self._sums: torch.Tensor | None = None

    def add(self, args: GRPOConfig, inputs: Mapping[str, Any], logps: torch.Tensor, entropies: torch.Tensor) -> None:
        """Count a micro-batch; `logps` and `entropies` are (B, C), of the policy that was just evaluated."""
        sums = policy_sums(args, inputs, logps.detach(), entropies.detach())
        self._sums = sums if self._sums is None else self._sums + sums

    def take(self, accelerator: Any) -> dict[str, float]:
        """The step's means by their recorded names, with their denominators; a collective, so every rank calls it."""
        sums = torch.zeros(len(NAMES) + 1, 2) if self._sums is None else self._sums
        self._sums = None
        total = accelerator.reduce(sums.to(accelerator.device, torch.float32), reduction="sum").tolist()
        means = {name: value / count for name, (value, count) in zip(NAMES, total[:-1], strict=True) if count > 0}
        return means | {"policy/completions": total[-1][0], "policy/tokens": total[-1][1]}


def policy_sums(
    args: GRPOConfig, inputs: Mapping[str, Any], logps: torch.Tensor, entropies: torch.Tensor
) -> torch.Tensor:
    """Rows of (sum, count), one for each of NAMES, then (completions, tokens); count 0 where there is no such metric.

    KL is the k3 estimate of DeepSeekMath (arXiv 2402.03300, eq. 4) to the reference, as the loss takes it: times the
    ratio where that corrects its bias (DeepSeek-V3.2, arXiv 2512.02556; TRL's default). A token counts as clipped where
    clipping stops its gradient (PPO, arXiv 1707.06347, eq. 7); cispo's clamp as in MiniMax-M1 (arXiv 2506.13585).
    """
    mask = inputs["completion_mask"].float()
    advantages = inputs["advantages"].unsqueeze(1)
    old, reference = inputs.get("old_per_token_logps"), inputs.get("ref_per_token_logps")
    log_ratio = logps - (logps if old is None else old)
    rows = {"policy/entropy": _row(entropies, mask)}
    if args.loss_type == "vespo":
        rows["policy/vespo_weight_mean"] = _row(_vespo_weights(args, inputs, log_ratio), torch.ones_like(advantages))
    units = mask
    if args.importance_sampling_level == "sequence":
        log_ratio = ((log_ratio * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)).unsqueeze(-1)
        units = (mask.sum(-1, keepdim=True) > 0).float()
    ratio = log_ratio.exp()
    rows["policy/ratio_mean"] = _row(ratio, units)
    if reference is not None:
        kl = (reference - logps).exp() - (reference - logps) - 1
        rows["policy/kl"] = _row(kl * ratio if args.use_bias_correction_kl else kl, mask)
    if args.loss_type in CLIPPED_LOSSES:
        rows["policy/clip_low"] = _row(((ratio < 1 - args.epsilon) & (advantages < 0)).float(), units)
        rows["policy/clip_high"] = _row(((ratio > 1 + args.epsilon_high) & (advantages > 0)).float(), units)
    elif args.loss_type == "cispo":
        rows["policy/clip_high"] = _row(((ratio > args.epsilon_high) & (advantages > 0)).float(), units)
    kept = torch.stack([(mask.sum(-1) > 0).float().sum(), mask.sum()])
    return torch.stack([*(rows.get(name, torch.zeros_like(kept)) for name in NAMES), kept])


def _vespo_weights(args: GRPOConfig, inputs: Mapping[str, Any], log_ratio: torch.Tensor) -> torch.Tensor:
    """TRL's own weights of sequences, shape (B, 1)."""
    return GRPOTrainer.get_gamma_weights(
        advantages=inputs["advantages"].unsqueeze(1),
        log_ratio_per_token=log_ratio,
        mask=inputs["completion_mask"],
        importance_sampling_ratio=inputs.get("importance_sampling_ratio"),
        k_pos=args.vespo_k_pos,
        lambda_pos=args.vespo_lambda_pos,
        k_neg=args.vespo_k_neg,
        lambda_neg=args.vespo_lambda_neg,
    )


def _row(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.stack([values.masked_fill(mask == 0, 0.0).sum(), mask.sum()])  # padding may hold anything
