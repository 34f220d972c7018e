"""A sequence-classification model as a verifier: loaded once, scores in batches on the training device.

Each process scores its own completions. Scoring draws no random number, and keeps nothing on the device but weights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jinja2 import TemplateError
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from grpo_studio.data import Sample
from grpo_studio.errors import ModelError, VerifierError
from grpo_studio.reward_models import WRONG_KIND, is_classifier, source_of
from grpo_studio.shown import shown
from grpo_studio.verifiers.judge import Score


@dataclass(frozen=True)
class _Row:
    """A conversation's token ids and a note on them; with no ids the note says why there are none."""

    ids: list[int]
    note: str


class RewardModel:
    """Scores conversations; `score` of the same text does not depend on what else is in the batch."""

    def __init__(self, params: Mapping[str, Any], device: torch.device, cache: Path) -> None:
        """Load model and tokenizer; `params` are those of `rewards/reward_model.py`, defaults filled in.

        Raises:
            VerifierError: it cannot be found or read, or has no trained classification head.
        """
        self._name = str(params["model"])
        self._device = device
        self._batch_size = int(params["batch_size"])
        self._squash = params["scale"] == "sigmoid"
        try:
            source = source_of(self._name, params["revision"], cache)
            self._model = _load(source, params["revision"], device)
            self._tokenizer = AutoTokenizer.from_pretrained(
                source, revision=params["revision"], trust_remote_code=False
            )
        except ModelError as error:
            raise VerifierError(f"the reward model {self._name}: {error}") from error
        except Exception as error:  # the boundary to transformers, which raises many kinds
            reason = shown(str(error), 300)
            raise VerifierError(f"cannot load the reward model {self._name}: {reason}") from error
        self._tokenizer.truncation_side = "left"  # the head reads the end, where the completion is
        self._max_length = self._longest(params["max_length"])

    def score(self, samples: Sequence[Sample], completions: Sequence[str]) -> list[Score]:
        """One score a completion. What cannot be scored abstains, with the reason: it is no fault of the text."""
        began = time.perf_counter()
        rows = [self._encoded(sample, completion) for sample, completion in zip(samples, completions, strict=True)]
        readable = [place for place, row in enumerate(rows) if row.ids]
        readable.sort(key=lambda place: len(rows[place].ids))  # less padding in a batch
        values: dict[int, float | str] = {}
        for first in range(0, len(readable), self._batch_size):
            places = readable[first : first + self._batch_size]
            values |= zip(places, self._forward([rows[place].ids for place in places]), strict=True)
        seconds = (time.perf_counter() - began) / max(1, len(rows))
        return [
            _scored(values[place], row.note, seconds) if row.ids else _abstained(row.note, seconds)
            for place, row in enumerate(rows)
        ]

    def _forward(self, ids: Sequence[Sequence[int]]) -> Sequence[float | str]:
        """The scores of a batch, or for each row why there is none."""
        config = self._model.config.get_text_config()
        own = config.pad_token_id
        pad = self._padding(own, ids)
        if pad is None and len(ids) > 1:
            half = len(ids) // 2  # a row alone needs no padding
            return [*self._forward(ids[:half]), *self._forward(ids[half:])]
        width = max(1, *map(len, ids))
        tokens = torch.tensor([[*row, *[pad] * (width - len(row))] for row in ids], device=self._device)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ids], device=self._device)
        config.pad_token_id = pad
        try:
            with torch.no_grad(), torch.autocast(self._device.type, enabled=False):
                logits = self._model(input_ids=tokens, attention_mask=mask).logits.float()
        except RuntimeError as error:  # the boundary to the device: no memory for this batch, say
            small = f"; use a params.batch_size below {self._batch_size}" if "memory" in str(error).lower() else ""
            return [f"the reward model failed: {shown(str(error), 200)}{small}"] * len(ids)
        finally:
            config.pad_token_id = own
        if self._squash:
            logits = torch.sigmoid(logits) if logits.shape[-1] == 1 else torch.softmax(logits, dim=-1)
        scores: list[float | str] = logits[:, -1].tolist()
        return scores

    def _padding(self, own: int | None, ids: Sequence[Sequence[int]]) -> int | None:
        """The model's own padding token, or one that stands in none of the texts; None when they use every token.

        The head reads the last token that is no padding, so the padding must be a token that no text ends in.
        """
        known = range(self._model.get_input_embeddings().num_embeddings)
        if own in known:
            return own
        used = {token for row in ids for token in row}
        return next((token for token in known if token not in used), None)

    def _encoded(self, sample: Sample, completion: str) -> _Row:
        try:
            text = self._text(sample.messages, completion)
        except (TemplateError, TypeError, ValueError) as error:
            why = shown(str(error), 200)
            return _Row([], f"the chat template of {self._name} refuses this conversation: {why}")
        limit = {} if self._max_length is None else {"truncation": True, "max_length": self._max_length}
        plain = self._tokenizer.chat_template is None
        ids = self._tokenizer(text, add_special_tokens=plain, **limit)["input_ids"]
        if not ids:
            return _Row([], f"the tokenizer of {self._name} makes no token of this conversation")
        note = ""
        if len(ids) == self._max_length:
            whole = len(self._tokenizer(text, add_special_tokens=plain, verbose=False)["input_ids"])
            note = f"the last {len(ids)} of {whole} tokens were read" if whole > len(ids) else ""
        return _Row(ids, note)

    def _text(self, messages: Sequence[Mapping[str, str]], completion: str) -> str:
        if self._tokenizer.chat_template is None:
            return "\n".join([*(message["content"] for message in messages), completion])
        turns = [dict(message) for message in messages] + [{"role": "assistant", "content": completion}]
        try:
            return str(self._tokenizer.apply_chat_template(turns, tokenize=False))
        except TemplateError:
            if turns[0]["role"] != "system":
                raise
            return str(self._tokenizer.apply_chat_template(turns[1:], tokenize=False))  # many take no system prompt

    def _longest(self, asked: int | None) -> int | None:
        config = self._model.config.get_text_config()
        known = [self._tokenizer.model_max_length, getattr(config, "max_position_embeddings", None)]
        takes = min((length for length in known if length is not None and 0 < length < 10**9), default=None)
        if asked is not None and takes is not None and asked > takes:
            raise VerifierError(f"max_length is {asked}, and {self._name} takes {takes} tokens; use {takes} or less")
        return asked if asked is not None else takes


def _load(source: str, revision: str | None, device: torch.device) -> Any:
    config = AutoConfig.from_pretrained(source, revision=revision, trust_remote_code=False)
    if not is_classifier(config.architectures):
        raise ModelError(WRONG_KIND.format(found=", ".join(config.architectures or ())))
    model, info = AutoModelForSequenceClassification.from_pretrained(
        source,
        revision=revision,
        trust_remote_code=False,
        config=config,
        dtype="auto" if device.type == "cuda" else torch.float32,
        output_loading_info=True,
    )
    missing = sorted([*info["missing_keys"], *(str(entry) for entry in info["mismatched_keys"])])
    if missing:
        raise ModelError(
            f"it lacks trained weights for {', '.join(missing[:3])}; give a model with a trained classification head"
        )
    return model.to(device).eval().requires_grad_(False)


def _scored(value: float | str, note: str, seconds: float) -> Score:
    if isinstance(value, str):
        return _abstained(value, seconds)
    if not math.isfinite(value):
        return Score(None, f"the model's score is {value}, which is not a finite number", None, seconds, "non_finite")
    return Score(value, note, None, seconds, "ok")


def _abstained(reason: str, seconds: float) -> Score:
    return Score(None, reason, None, seconds, "abstained")
