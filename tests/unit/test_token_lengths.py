"""Tokens are counted as the tokenizer itself counts them, whatever it does with the stretches between special tokens."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from grpo_studio.training import token_lengths
from grpo_studio.training.token_lengths import TokenLengths

CORPUS = ["What is 3 + 4? The answer is 7.", "Ünïcödé ﬁne", "  spaces   and\n\nlines\t"] * 4
TEXTS = [
    *(f"<|start|>user\n{text}<|end|>\n<|start|>assistant\n" for text in ("1 + 1", " 1 + 1 ", "", "\n", "e\u0301\u00a0x", "<|end|><|end|>")),
    "<|start|>", "", "no special token", "<|startx|> <|end", "a<|endlong|>b", "\u202ea\x00b<|end|> ", "<think>x</think>",
]  # fmt: skip


def trained(pre: Any, normalizer: Any = None, **token: bool) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=["<unk>"])
    )
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, **token) for text in ("<|start|>", "<|end|>", "<|endlong|>")]
    )
    tokenizer.add_tokens([AddedToken("<think>", normalized=False, **token)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>")


TOKENIZERS = {
    "byte level": lambda: trained(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "a space in front": lambda: trained(pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "qwen": lambda: trained(
        pre_tokenizers.Sequence([pre_tokenizers.Split(" ", "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
        normalizers.NFC(),
    ),
    "llama": lambda: trained(pre_tokenizers.Metaspace(prepend_scheme="first")),
    "lowercase": lambda: trained(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.Lowercase()),
    "tokens that take blanks": lambda: trained(pre_tokenizers.ByteLevel(add_prefix_space=False), lstrip=True, rstrip=True),
}  # fmt: skip
IN_STRETCHES = {"byte level", "qwen"}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_counts_are_those_of_the_tokenizer(name: str) -> None:
    tokenizer = TOKENIZERS[name]()
    expected = [len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in TEXTS]
    lengths = TokenLengths(tokenizer, special=False)
    assert lengths.of(TEXTS) == expected
    assert lengths.of(TEXTS[::-1]) == expected[::-1], "with what is known by now"
    assert (lengths._cut is not None) == (name in IN_STRETCHES)


def test_a_tokenizer_that_differs_in_stretches_is_asked_for_whole_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_lengths, "_is_independent", lambda part: True)
    tokenizer = TOKENIZERS["a space in front"]()
    lengths = TokenLengths(tokenizer, special=False)
    assert lengths.of(TEXTS) == [len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in TEXTS]
