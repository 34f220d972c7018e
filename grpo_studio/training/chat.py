"""Models of a run that answer in a chat: the model before training, a checkpoint, or two of them side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList, TextStreamer

from grpo_studio.checkpoints import Checkpoint
from grpo_studio.config import RunConfig
from grpo_studio.errors import ModelError
from grpo_studio.play.talk import Message, Reply, Sampling
from grpo_studio.settings import Settings
from grpo_studio.training.checkpoint_model import load_model
from grpo_studio.training.generation import end_tokens
from grpo_studio.training.tokenization import render

Side = Checkpoint | None
"""None: the model before training."""


class ChatModels:
    """The sides of a chat, loaded once. A base beside an adapter is the same model with the adapter off."""

    def __init__(
        self, config: RunConfig, settings: Settings, sides: Sequence[Side], tell: Callable[[str], None]
    ) -> None:
        """Load what the sides need.

        Raises:
            StudioError: a model cannot be loaded.
        """
        self._template_arguments = config.algorithm.extra.get("chat_template_kwargs") or {}
        self._sides = list(sides)
        self._loaded: dict[str, tuple[Any, Any]] = {}
        for side in sorted(sides, key=lambda side: side is None):  # the base last: an adapter's model can serve for it
            if not (side is None and self._with_adapter() is not None) and _name(side) not in self._loaded:
                self._loaded[_name(side)] = load_model(config, settings, side, tell)

    def answer(
        self,
        side: int,
        messages: Sequence[Message],
        sampling: Sampling,
        emit: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> Reply:
        """Sample one reply; `emit` gets the text as it comes, `stopped` ends it early.

        Raises:
            ModelError: the memory does not hold it.
        """
        with self._side(self._sides[side]) as (model, tokenizer):
            inputs = tokenizer(
                render(tokenizer, messages, self._template_arguments),
                return_tensors="pt",
                add_special_tokens=tokenizer.chat_template is None,
            ).to(model.device)
            generation = _generation(model, tokenizer, sampling)
            stop = StoppingCriteriaList([_Stopped(stopped)])
            streamer = _Streamer(tokenizer, emit)
            torch.manual_seed(sampling.seed)
            try:
                with torch.no_grad():
                    output = model.generate(
                        **inputs, generation_config=generation, streamer=streamer, stopping_criteria=stop
                    )
            except torch.cuda.OutOfMemoryError as error:
                raise ModelError("the device has too little memory for this reply; ask for fewer tokens") from error
        ids = output[0, inputs["input_ids"].shape[1] :].tolist()
        ended = bool(ids) and ids[-1] in generation.eos_token_id
        return Reply(tokenizer.decode(ids, skip_special_tokens=True), len(ids), truncated=not ended)

    @contextmanager
    def _side(self, side: Side) -> Iterator[tuple[Any, Any]]:
        known = self._loaded.get(_name(side))
        if known is not None:
            yield known
            return
        model, tokenizer = self._with_adapter() or (None, None)
        if model is None:
            raise ModelError("this side was not loaded; open the chat again")
        with model.disable_adapter():
            yield model, tokenizer

    def _with_adapter(self) -> tuple[Any, Any] | None:
        return next((pair for pair in self._loaded.values() if hasattr(pair[0], "disable_adapter")), None)


class _Streamer(TextStreamer):
    def __init__(self, tokenizer: Any, emit: Callable[[str], None]) -> None:
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=True)
        self._emit = emit

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        if text:
            self._emit(text)


class _Stopped(StoppingCriteria):
    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        return torch.full((input_ids.shape[0],), self._stopped(), device=input_ids.device, dtype=torch.bool)


def _name(side: Side) -> str:
    return "" if side is None else str(side.path)


def _generation(model: Any, tokenizer: Any, sampling: Sampling) -> GenerationConfig:
    luck = {"do_sample": True, "temperature": sampling.temperature} if sampling.temperature else {"do_sample": False}
    return GenerationConfig(
        **luck,
        max_new_tokens=sampling.max_tokens,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=end_tokens(model, tokenizer),
        disable_compile=True,
    )
