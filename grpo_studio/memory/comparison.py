"""PPO, DPO and GRPO beside each other: the models that each holds, what it needs, what it is good for. Pure.

Memory is that of the hand sum (`hand_figures`), so both tell the same figures. Sources: PPO, Schulman et al., arXiv
1707.06347, with the models of Ouyang et al., arXiv 2203.02155; DPO, Rafailov et al., arXiv 2305.18290; GRPO, Shao et
al., arXiv 2402.03300.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grpo_studio.memory.hand_figures import QWEN3_8B, HandFigure, hand_figures, hand_lines

ROWS = ("models", "memory", "data", "exploration", "stability", "best_use")


@dataclass(frozen=True)
class HeldModel:
    """A model that lies in memory while a method trains."""

    name: str
    trained: bool
    optional: bool = False


@dataclass(frozen=True)
class Method:
    """One column of the card.

    Args:
        models: those that are held in full fine-tuning.
        memory: figures of the hand sum for them, with what each is of.
    """

    name: str
    title: str
    source: str
    models: tuple[HeldModel, ...]
    memory: tuple[tuple[str, HandFigure], ...]
    data: str
    exploration: str
    stability: str
    best_use: str

    @property
    def models_text(self) -> str:
        return ", ".join(
            f"{model.name} ({'trained' if model.trained else 'frozen'}{', optional' if model.optional else ''})"
            for model in self.models
        )

    @property
    def memory_text(self) -> str:
        return "; ".join(f"{figure.text} {what}" for what, figure in self.memory)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "models": [vars(model) for model in self.models],
            "models_text": self.models_text,
            "memory": [{"what": what, "bytes": figure.exact, "text": figure.text} for what, figure in self.memory],
            "memory_text": self.memory_text,
            "data": self.data,
            "exploration": self.exploration,
            "stability": self.stability,
            "best_use": self.best_use,
        }


POLICY = HeldModel("policy", trained=True)
VALUE = HeldModel("value model", trained=True)
REFERENCE = HeldModel("reference", trained=False)
REWARD = HeldModel("reward model", trained=False)


def comparison(config: Mapping[str, Any] = QWEN3_8B) -> tuple[Method, ...]:
    """The card, with the memory that a model of this config.json takes in full fine-tuning.

    Raises:
        ModelError: the config lacks a number that the sum needs.
    """
    figures = {figure.name: figure for figure in hand_figures(config)}
    return (_ppo(figures), _dpo(figures), _grpo(figures))


def comparison_lines(methods: Sequence[Method]) -> list[str]:
    """The card for people: a block a method."""
    titles = {"models": "models in memory", "data": "data needed", "best_use": "best use"}
    lines = []
    for method in methods:
        lines.append(f"{method.title} ({method.source})")
        told = method.as_dict()
        for row in ROWS:
            lines.append(f"  {titles.get(row, row)}: {told.get(f'{row}_text', told[row])}")
    return lines


def hand_sums() -> tuple[dict[str, Any], list[str]]:
    """The hand figures of Qwen3-8B and the card of the methods: as a document, and as lines for people."""
    figures, methods = hand_figures(), comparison()
    document = {
        "model": "Qwen/Qwen3-8B",
        "figures": [figure.as_dict() for figure in figures],
        "comparison": [method.as_dict() for method in methods],
    }
    title = "Qwen/Qwen3-8B: 36 layers, hidden size 4,096, 8 KV heads of 128; GB are 1e9 bytes"
    return document, [title, "", *hand_lines(figures), "", *comparison_lines(methods)]


def _ppo(figures: Mapping[str, HandFigure]) -> Method:
    return Method(
        "ppo", "PPO", "arXiv 1707.06347", (POLICY, VALUE, REFERENCE, REWARD), (("in all", figures["ppo"]),),
        data="Prompts, and a reward model, which is trained on ranked answers beforehand.",
        exploration="Samples its own answers; the value model says what was to be expected of each token.",
        stability="Clipped steps hold it; the value model has to learn beside the policy, and while it is wrong, so "
        "are the advantages. Most settings to get right.",
        best_use="Rewards that come token by token or over many turns, where a baseline for each state pays.",
    )  # fmt: skip


def _dpo(figures: Mapping[str, HandFigure]) -> Method:
    return Method(
        "dpo", "DPO", "arXiv 2305.18290", (POLICY, REFERENCE),
        (
            ("in all", figures["full_with_reference"]),
            ("with the reference's log-probs made beforehand", figures["full"]),
        ),
        data="Pairs of answers, one preferred to the other, for each prompt.",
        exploration="None: it learns from answers that are there already, and nothing is sampled.",
        stability="As steady as supervised training; too many epochs push down the preferred answers as well.",
        best_use="Tone, style and preference, where pairs are at hand and no program can judge an answer.",
    )  # fmt: skip


def _grpo(figures: Mapping[str, HandFigure]) -> Method:
    reference = HeldModel("reference", trained=False, optional=True)
    memory = (
        ("with a reference (beta above 0)", figures["full_with_reference"]),
        ("without (beta 0)", figures["full"]),
        ("with LoRA, whose base is the reference", figures["lora_total"]),
        ("with QLoRA", figures["qlora_total"]),
    )
    return Method(
        "grpo", "GRPO", "arXiv 2402.03300", (POLICY, reference), memory,
        data="Prompts, and a verifier: a gold answer to compare with, tests to run, a rule. Or a reward model.",
        exploration="Samples G answers a prompt; their mean is the baseline, so no value model is needed. A group "
        "whose rewards are all equal teaches nothing.",
        stability="Clipped steps; noisy with small groups, steadier with larger ones. A reward that can be tricked "
        "will be: probe the verifiers first.",
        best_use="Answers that a program can check: mathematics, code, formats, tools, games.",
    )  # fmt: skip
