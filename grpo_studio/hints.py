"""Advice beside settings: what people use and why, each with the paper or page that says so."""

from __future__ import annotations

from grpo_studio.declaration import Hint

_DEEPSEEKMATH = ("DeepSeekMath", "https://arxiv.org/abs/2402.03300")
_DAPO = ("DAPO", "https://arxiv.org/abs/2503.14476")
_DR_GRPO = ("Dr. GRPO", "https://arxiv.org/abs/2503.20783")
_R1 = ("DeepSeek-R1, Nature 2025", "https://www.nature.com/articles/s41586-025-09422-z")
_TRL = ("TRL, GRPOConfig", "https://huggingface.co/docs/trl/grpo_trainer#trl.GRPOConfig")
_TRL_LORA = ("TRL, LoRA Without Regret", "https://huggingface.co/docs/trl/lora_without_regret")
_LORA = ("LoRA Without Regret", "https://thinkingmachines.ai/blog/lora/")
_QLORA = ("QLoRA", "https://arxiv.org/abs/2305.14314")

GROUP_SIZE = (
    Hint(
        "8 is TRL's default. Fewer: cheaper steps, a noisier baseline, more groups whose rewards are all equal.", *_TRL
    ),
    Hint("16 with 512 prompts a step; groups that are all right or all wrong are sampled anew.", *_DAPO),
    Hint("64: a good baseline even where answers are rarely right, at the price of sampling.", *_DEEPSEEKMATH),
)
BETA = (
    Hint("0: no reference model in memory; usual where rewards are checked by rule.", *_DAPO),
    Hint("0.001: a light pull to the starting model.", *_R1),
    Hint("0.04: the first paper's; keeps the policy close, for rewards that can be fooled.", *_DEEPSEEKMATH),
)
LEARNING_RATE = (
    Hint("1e-6 with all weights trained.", *_TRL),
    Hint("About ten times that with an adapter, whatever its rank: 1e-5, up to 5e-5 for a small model.", *_TRL_LORA),
    Hint("The same with 4-bit weights: the adapter is trained in 16 bits all the same.", *_QLORA),
)
ADAPTER = (
    Hint("LoRA learns as well as full fine-tuning when the signal is a reward, even at a low rank.", *_LORA),
    Hint("QLoRA: weights in NF4 lose little, and a model takes about a quarter of the memory.", *_QLORA),
)
LORA_RANK = (Hint("1 to 32 is enough for reinforcement learning: a reward carries few bits.", *_TRL_LORA),)
LORA_TARGETS = (Hint("All linear layers; attention alone learns less, even at a higher rank.", *_LORA),)
EPSILON_HIGH = (Hint("0.28 with epsilon 0.2: rare tokens can gain, so that entropy does not collapse.", *_DAPO),)
SCALE_REWARDS = (
    Hint("none: dividing by the group's deviation favours questions that are too easy or too hard.", *_DR_GRPO),
)
LOSS_TYPE = (
    Hint("dapo: the mean over all tokens of the batch, so long answers count as much as their tokens.", *_DAPO),
    Hint("dr_grpo: a constant divisor, free of the bias to long wrong answers.", *_DR_GRPO),
    Hint("grpo: the mean over each answer first, as in the first paper.", *_DEEPSEEKMATH),
)
