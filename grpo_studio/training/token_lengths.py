"""How many tokens texts have, without making the ids and without counting the same stretch of a template twice.

A fast tokenizer cuts a text at its special tokens first and looks at each stretch between them alone. Most stretches of
rendered chats are the template's own and return in every prompt: they are counted once.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

KNOWN_AT_MOST = 5000
COMPARED = 20
"""Texts of the first batch that are also counted whole; where that differs, all are."""
_INDEPENDENT = {"ByteLevel", "Split", "Digits", "Punctuation", "NFC", "NFD", "NFKC", "NFKD"}
"""Parts of a tokenizer that treat a stretch of text alike wherever it stands (ByteLevel: without a leading space)."""


class TokenLengths:
    """Counts tokens of texts as `tokenizer` does; `special` as for a call of it."""

    def __init__(self, tokenizer: Any, special: bool) -> None:
        self._tokenizer, self._special = tokenizer, special
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self._cut = None if special or self._backend is None else _cut_at_special_tokens(self._backend)
        self._known: dict[str, int] = {}
        self._compared = False

    def of(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text."""
        if self._cut is None:
            return self._whole(texts)
        if not self._compared:
            self._compared = True
            if self._in_stretches(texts[:COMPARED], self._cut) != self._whole(texts[:COMPARED]):
                self._cut = None
                return self._whole(texts)
        return self._in_stretches(texts, self._cut)

    def _whole(self, texts: Sequence[str]) -> list[int]:
        if self._backend is None:
            return [len(ids) for ids in self._tokenizer(list(texts), add_special_tokens=self._special)["input_ids"]]
        count_all(self._backend)
        encoded = self._backend.encode_batch_fast(list(texts), add_special_tokens=self._special)
        return [len(encoding) for encoding in encoded]

    def _in_stretches(self, texts: Sequence[str], cut: re.Pattern[str]) -> list[int]:
        parted = [cut.split(text) for text in texts]  # stretches in even places, special tokens in odd ones
        times = Counter(stretch for parts in parted for stretch in parts[::2] if stretch)
        new = [stretch for stretch in times if stretch not in self._known]
        counts = dict(zip(new, self._whole(new), strict=True))
        totals = [
            len(parts) // 2 + sum(counts.get(part) or self._known.get(part, 0) for part in parts[::2] if part)
            for parts in parted
        ]
        again = {stretch: count for stretch, count in counts.items() if times[stretch] > 1}
        if len(self._known) + len(again) <= KNOWN_AT_MOST:
            self._known |= again
        return totals


def count_all(backend: Any) -> None:
    """Let a fast tokenizer neither cut nor pad. It is changed only where it must be: another thread may be using it."""
    if backend.truncation is not None:
        backend.no_truncation()
    if backend.padding is not None:
        backend.no_padding()


def _cut_at_special_tokens(backend: Any) -> re.Pattern[str] | None:
    """A pattern of the special tokens, the longest first; None where stretches between them are not independent."""
    tokens = backend.get_added_tokens_decoder().values()
    normalizer = _parts(backend.normalizer)
    if any(token.lstrip or token.rstrip or token.single_word or (token.normalized and normalizer) for token in tokens):
        return None
    if not all(map(_is_independent, [*normalizer, *_parts(backend.pre_tokenizer)])):
        return None
    contents = sorted((token.content for token in tokens if token.content), key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, contents))})") if contents else None


def _parts(component: Any) -> list[dict[str, Any]]:
    """What a normalizer or pre-tokenizer is made of, from its own description."""
    if component is None:
        return []
    described = json.loads(component.__getstate__())
    return described.get("normalizers", described.get("pretokenizers", [described]))


def _is_independent(part: dict[str, Any]) -> bool:
    return part.get("type") in _INDEPENDENT and not part.get("add_prefix_space", False)
