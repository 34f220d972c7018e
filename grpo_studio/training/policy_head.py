"""A second way through a model: up to the last hidden states, then a loss's own head instead of the logits.

The head runs inside the model's forward, so that DDP, FSDP and DeepSpeed see one forward and gather what they shard.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from trl.trainer.utils import maybe_gather_lm_head_ctx

from grpo_studio.errors import ModelError

PolicyHead = Callable[[torch.Tensor, Any], dict[str, torch.Tensor]]
"""Takes the last hidden states, shape (B, P+C, H), and the model's output layer."""
TOKEN_LOGITS = 1 << 24
"""Most logits held at once by `token_statistics`: 64 MiB in float32."""


def add_policy_head(model: Any) -> None:
    """Let `model(..., policy_head=head)` return what `head` makes of the hidden states; else nothing changes.

    Call it on the model itself, below any adapter or wrapper, and before they are prepared for training.
    """
    original = model.forward

    @functools.wraps(type(model).forward)  # `generate` checks its arguments against the signature
    def forward(self: Any, *args: Any, policy_head: PolicyHead | None = None, **kwargs: Any) -> Any:
        if policy_head is None:
            return original(*args, **kwargs)
        kwargs["use_cache"] = False
        hidden = self.base_model(*args, **kwargs).last_hidden_state
        lm_head = self.get_output_embeddings()
        return policy_head(hidden.to(lm_head.weight.device), lm_head)

    model.forward = types.MethodType(forward, model)


def logit_scale(model_config: Any) -> float:
    """What a model multiplies its logits by, under the names that architectures give it; 1 for most.

    Raises:
        ModelError: the logits are capped, which the fused loss cannot do.
    """
    config = model_config.get_text_config()
    cap = getattr(config, "final_logit_softcapping", None)
    if cap is not None:
        raise ModelError(
            f"Liger's loss cannot cap logits, and this model caps them (final_logit_softcapping={cap:g}); "
            "use memory.loss_backend=trl"
        )
    for name in ("logit_scale", "output_multiplier", "lm_head_multiplier"):
        if getattr(config, name, None) is not None:
            return float(getattr(config, name))
    divisor = getattr(config, "logits_scaling", None)
    if divisor is None:
        return 1.0
    return float(divisor) if config.model_type == "hyperclovax" else 1.0 / float(divisor)


class WholeHead:
    """The output layer's weight (V, H) and bias (V) or None, gathered when they are sharded, for one use within.

    Raises:
        ModelError: what lies here is a shard that cannot be gathered.
    """

    def __init__(self, lm_head: Any) -> None:
        self._weight, self._bias = lm_head.weight, lm_head.bias
        self._gathered = maybe_gather_lm_head_ctx(self._weight, self._bias)

    def __enter__(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        self._gathered.__enter__()
        if isinstance(self._weight, DTensor) and self._weight.requires_grad:
            raise ModelError(
                "the output layer is sharded apart from the model here, and its gradient would not be summed over the "
                "processes; use an adapter, or scale.strategy=ddp"
            )
        weight = _whole(self._weight)
        if weight.dim() != 2 or weight.numel() == 0:
            raise ModelError(
                f"the output layer's weight is a shard here (shape {tuple(weight.shape)}) and cannot be gathered for "
                "the fused loss; use memory.loss_backend=trl"
            )
        return weight, None if self._bias is None else _whole(self._bias)

    def __exit__(self, *error: Any) -> None:
        self._gathered.__exit__(*error)


def _whole(parameter: torch.Tensor) -> torch.Tensor:
    return parameter.full_tensor() if isinstance(parameter, DTensor) else parameter


@torch.no_grad()
def token_statistics(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    ids: torch.Tensor,
    mask: torch.Tensor,
    temperature: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-prob of each token and entropy of its distribution in nats, a few tokens' logits at a time.

    Args:
        hidden: (B, C, H), the states that predict `ids`.
        weight, bias: (V, H) and (V) or None.
        ids, mask: (B, C); where the mask is 0 nothing is computed.
        temperature: what logits are divided by.

    Returns:
        Two float32 tensors of shape (B, C), 0 where the mask is.
    """
    real = mask.bool()
    rows, targets = hidden[real], ids[real]
    weight, bias = weight.to(rows.dtype), None if bias is None else bias.to(rows.dtype)
    step = max(1, TOKEN_LOGITS // weight.shape[0])
    statistics = rows.new_zeros(2, rows.shape[0], dtype=torch.float32)
    for start in range(0, rows.shape[0], step):
        tile = slice(start, start + step)
        logits = torch.nn.functional.linear(rows[tile], weight, bias).float()
        logits /= temperature
        normalizer = logits.logsumexp(-1)
        statistics[0, tile] = logits.gather(-1, targets[tile, None]).squeeze(-1) - normalizer
        probabilities = (logits - normalizer[:, None]).exp_()
        statistics[1, tile] = normalizer - probabilities.mul_(logits).sum(-1)
    logps, entropies = (statistics.new_zeros(ids.shape).masked_scatter(real, values) for values in statistics)
    return logps, entropies
