"""How long prompts are, as far as a quick look at data on this disk tells: nothing is fetched, no tokenizer loaded."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_studio import data
from grpo_studio.config import RunConfig
from grpo_studio.errors import DataError

ROWS = 256
CHARACTERS_A_TOKEN = 3
"""English has about four; digits, code and other scripts fewer."""
TEMPLATE_TOKENS = 32
"""What a chat template writes around a question."""


@dataclass(frozen=True)
class PromptGuess:
    """Tokens of the longest prompt seen, and where they are from."""

    tokens: int
    note: str


def guess_prompt_tokens(config: RunConfig) -> PromptGuess | None:
    """From the first rows of data that are made in place or lie here; None for those of the Hub, or unreadable ones."""
    if data.is_on_hub(config.dataset.source):
        return None
    try:
        rows = data.head(config.dataset, ROWS)
        mapping = data.map_columns(rows, config.dataset.columns, config.dataset.source)
        samples = [data.to_sample(row, config.dataset, mapping, number) for number, row in enumerate(rows, start=1)]
    except DataError:
        return None
    lengths = [sum(len(turn["content"]) for turn in sample.messages) for sample in samples if sample is not None]
    if not lengths:
        return None
    tokens = max(lengths) // CHARACTERS_A_TOKEN + TEMPLATE_TOKENS
    note = (
        f"prompts are taken to have {tokens:,} tokens: the longest of the first {len(rows):,} rows has "
        f"{max(lengths):,} characters, three to a token, and {TEMPLATE_TOKENS} for the chat template"
    )
    return PromptGuess(tokens, note)
