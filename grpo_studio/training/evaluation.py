"""Score the held-out rows with the present weights: one greedy completion a row, the run's own verifiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from transformers import GenerationConfig

from grpo_studio.data import Sample
from grpo_studio.store.records import CompletionRecord, GroupRecord
from grpo_studio.training.rewards import JudgedRewards
from grpo_studio.training.scored_batch import weighted_reward
from grpo_studio.training.tokenization import render

BATCH_ROWS = 32


def evaluate(
    model: Any,
    tokenizer: Any,
    samples: Sequence[Sample],
    judged: JudgedRewards,
    max_new_tokens: int,
    eos_token_ids: Sequence[int],
) -> list[GroupRecord]:
    """Complete each row greedily and score it.

    Returns:
        One group of one completion a row, in the order of `samples`, split "eval", advantage None.
    """
    was_training = model.training
    model.eval()
    try:
        completions = [
            ids
            for rows in _batches(samples)
            for ids in _complete(model, tokenizer, rows, max_new_tokens, eos_token_ids)
        ]
    finally:
        model.train(was_training)
    texts = tokenizer.batch_decode(completions, skip_special_tokens=True)
    scores = judged.score(texts, samples)
    return [
        _group(sample, text, ids, row, truncated=not ids or ids[-1] not in eos_token_ids)
        for sample, text, ids, row in zip(samples, texts, completions, scores, strict=True)
    ]


def _group(sample: Sample, text: str, ids: Sequence[int], scores: Any, truncated: bool) -> GroupRecord:
    reward = weighted_reward(scores)
    completion = CompletionRecord(text, len(ids), truncated, reward, None, scores)
    answer = None if sample.answer is None else str(sample.answer)
    return GroupRecord(sample.question, answer, (completion,), reward, None, split="eval")


def _batches(samples: Sequence[Sample]) -> Iterator[Sequence[Sample]]:
    for start in range(0, len(samples), BATCH_ROWS):
        yield samples[start : start + BATCH_ROWS]


def _complete(
    model: Any, tokenizer: Any, samples: Sequence[Sample], max_new_tokens: int, eos_token_ids: Sequence[int]
) -> list[list[int]]:
    """Token ids of the completions, each up to and with its first end token."""
    prompts = [render(tokenizer, sample.messages) for sample in samples]
    inputs = tokenizer(
        prompts,
        return_tensors="pt",
        padding=True,
        padding_side="left",
        add_special_tokens=tokenizer.chat_template is None,
    ).to(model.device)
    greedy = GenerationConfig(
        do_sample=False,
        max_new_tokens=max_new_tokens,
        eos_token_id=list(eos_token_ids),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
    )
    with torch.inference_mode():
        output = model.generate(**inputs, generation_config=greedy)
    return [_until_end(row, eos_token_ids) for row in output[:, inputs["input_ids"].shape[1] :].tolist()]


def _until_end(ids: list[int], eos_token_ids: Sequence[int]) -> list[int]:
    for place, token in enumerate(ids):
        if token in eos_token_ids:
            return ids[: place + 1]
    return ids
