"""Ready prompt templates: what to say around each question, so that a verifier finds the answer. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class PromptTemplate:
    """Values for `dataset.prompt_template` and `dataset.system_prompt`.

    `title` is how a form offers it; `verifiers` are those that read answers of this form.
    """

    title: str
    template: str
    system_prompt: str | None = None
    verifiers: tuple[str, ...] = ()


PROMPT_TEMPLATES: Final[Mapping[str, PromptTemplate]] = {
    "plain": PromptTemplate("The question alone", "{prompt}"),
    "boxed": PromptTemplate(
        "Answer in \\boxed{}",
        "{prompt}\n\nThink step by step, then give the final answer in \\boxed{}.",
        verifiers=("math_boxed", "math_equal", "math_numeric"),
    ),
    "think_answer": PromptTemplate(
        "Think and answer tags",
        "{prompt}",
        "First think about the question, then answer it. Write the thinking between <think> and </think>, and after it "
        "the answer alone between <answer> and </answer>. Write nothing outside these tags.",
        verifiers=("format_tags", "math_equal", "math_numeric", "exact_match"),
    ),
    "number": PromptTemplate(
        "Number only",
        "{prompt}\n\nReply with the number only: no words, no unit.",
        verifiers=("math_numeric", "exact_match"),
    ),
    "countdown": PromptTemplate(
        "Countdown equation",
        "{prompt}\n\nUse +, -, *, / and brackets, and each number once. Work it out between <think> and </think>, then "
        "write the equation between <answer> and </answer>, such as <answer>(1 + 2) / 3</answer>.",
        verifiers=("countdown", "format_tags"),
    ),
}
