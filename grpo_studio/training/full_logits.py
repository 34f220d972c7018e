"""Per-token log-probs from all logits at once: the plain way, and the baseline of every memory comparison."""

from __future__ import annotations

from typing import Any, Literal

import torch


def full_token_logps(
    model: Any,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    count: int,
    temperature: float,
    entropy: Literal["none", "without", "with gradient"] = "without",
    router_loss: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
    """Log-probs of the last `count` tokens and the entropies of their distributions, in float32 and nats.

    The model's own forward makes the logits, with whatever it does to them; they are taken to float32 as transformers
    does for its own losses.

    Returns:
        Log-probs (B, count); entropies (B, count) and the router's auxiliary loss of a mixture of experts, when asked
        for.
    """
    more = {"output_router_logits": True} if router_loss else {}
    output = model(
        input_ids=input_ids, attention_mask=attention_mask, logits_to_keep=count + 1, use_cache=False, **more
    )
    logits = output.logits[:, -count - 1 : -1].float()
    if temperature != 1.0:
        logits = logits / temperature
    normalizer = logits.logsumexp(-1)
    logps = logits.gather(-1, input_ids[:, -count:, None]).squeeze(-1) - normalizer
    entropies = None
    if entropy != "none":
        with torch.set_grad_enabled(entropy == "with gradient" and torch.is_grad_enabled()):
            rows = zip(logits, normalizer, strict=True)
            entropies = torch.stack([total - ((row - total[:, None]).exp() * row).sum(-1) for row, total in rows])
    return logps, entropies, output.aux_loss if router_loss else None
