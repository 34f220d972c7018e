"""Where special tokens stand in a rendered prompt: asked of its tokenizer, which alone knows them."""

from __future__ import annotations

from typing import Any

from grpo_studio.errors import DataError
from grpo_studio.shown import shown
from grpo_studio.training.token_lengths import count_all
from grpo_studio.training.tokenization import special_tokens


def prompt_tokens(tokenizer: Any, text: str, row: int = 0) -> tuple[int, list[tuple[int, int, str]]]:
    """Tokens of a rendered prompt, and begin, end and name of each that is no text.

    Raises:
        DataError: the tokenizer refuses the text.
    """
    add = tokenizer.chat_template is None
    backend = getattr(tokenizer, "backend_tokenizer", None)
    try:
        if backend is None:
            ids = tokenizer(text, add_special_tokens=add)["input_ids"]
            return len(ids), _searched(text, special_tokens(tokenizer))
        count_all(backend)
        encoding = backend.encode(text, add_special_tokens=add)
    except Exception as error:  # the boundary to tokenizers: half of a surrogate pair, say
        reason = shown(str(error), 150)
        raise DataError(f"row {row}: the tokenizer refuses its text: {reason}; mend the row") from error
    added = {number: entry.content for number, entry in tokenizer.added_tokens_decoder.items()}
    spans = [
        (begin, end, added[number])
        for number, (begin, end) in zip(encoding.ids, encoding.offsets, strict=True)
        if number in added
    ]
    return len(encoding), spans


def _searched(text: str, tokens: set[str]) -> list[tuple[int, int, str]]:
    """For a tokenizer that tells no places."""
    spans, at = [], 0
    while found := min(
        ((place, -len(token), token) for token in tokens if (place := text.find(token, at)) >= 0), default=None
    ):
        place, _, token = found
        at = place + len(token)
        spans.append((place, at, token))
    return spans
