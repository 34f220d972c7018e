"""Which metrics a run will not have, and why. Pure: the recorder notes it, the Live page says it in the empty panel."""

from __future__ import annotations

from grpo_studio.config import RunConfig


def absent_metrics(config: RunConfig) -> dict[str, str]:
    """Metrics that this run will not have, each with the reason, so that no panel is blank without a word."""
    reasons = {}
    if config.algorithm.beta == 0:
        reasons["policy/kl"] = "no reference model: beta is 0"
    if config.algorithm.loss_type == "cispo":
        reasons["policy/clip_low"] = "cispo clips the ratio from above only"
    if config.algorithm.loss_type in ("sapo", "vespo"):
        reasons["policy/clip_low"] = reasons["policy/clip_high"] = (
            f"{config.algorithm.loss_type} weights tokens smoothly and clips none"
        )
    if config.dataset.held_out == 0:
        reasons["eval/reward"] = "no rows are held out"
    if not config.uses_vllm:
        reasons["policy/sampler_difference"] = "the trainer samples by itself"
    elif not config.rollout.importance_sampling_correction:
        reasons["policy/sampler_difference"] = "the sampler correction is off"
    return reasons
