"""The layers of a model, forward and backward, on fake tensors: what lived at each instant, stretch by stretch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from grpo_studio.memory.traced import LOSS_PARTS, TraceRequest
from grpo_studio.training.trace_lines import Array, Timeline, rows_of
from grpo_studio.training.trace_mode import Timekeeper

GRADIENTS, ACTIVATIONS, _, OTHER = LOSS_PARTS
HELD = "held"
"""Category of what a forecast counts elsewhere: weights, adapter."""


@dataclass(frozen=True)
class Pass:
    """What a pass over the layers took, in bytes by `LOSS_PARTS`.

    Args:
        instants: of each stretch.
        kept: what stays until the backward pass comes back to the layers, the last hidden states included, (parts,).
        cached: what autocast keeps until the head is done, (parts,).
        hidden: the number format of the last hidden states, and whether they carry gradient.
    """

    instants: Timeline
    kept: Array
    cached: Array
    hidden: tuple[torch.dtype, bool]


class Body:
    """A model of a small depth, as the trainer prepares it, whose layers are traced.

    Args:
        model: with its adapter.
        base: without.
        layers: its transformer layers.
        ends: of a depth's layers, how many at the start and at the end have counterparts in every depth.
    """

    def __init__(self, model: Any, base: Any, layers: list[Any], ends: tuple[int, int], request: TraceRequest) -> None:
        self.model, self._base, self._request = model, base, request
        self._depth, self._ends = len(layers), ends
        self._watch: Timekeeper | None = None
        self._backward = False
        for place, layer in enumerate(layers):
            layer.register_forward_pre_hook(self._entering(place), with_kwargs=True)
            layer.register_forward_hook(self._leaving(place))

    def run(self, rows: int, gradient: bool) -> Pass:
        """One pass over so many completions."""
        self._watch = watch = Timekeeper(self._request.device == "cuda", self._request.completion_tokens)
        self._backward = False
        watch.track(self.model, category=HELD)
        trained = [one for one in self.model.parameters() if one.requires_grad]
        hooks = [one.register_post_accumulate_grad_hook(watch.accumulated) for one in trained]
        try:
            with watch, nullcontext() if gradient else torch.no_grad():
                return self._run(watch, rows, gradient)
        finally:
            for hook in hooks:  # a tensor's hooks are references that no garbage collector sees
                hook.remove()
            self._watch = None
            torch.clear_autocast_cache()
            self.model.zero_grad(set_to_none=True)

    def _run(self, watch: Timekeeper, rows: int, gradient: bool) -> Pass:
        request = self._request
        watch.category = OTHER
        given = _given(rows, request)
        watch.category = ACTIVATIONS
        watch.enter(["before the layers"])
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=request.autocast):
            hidden = self._base.base_model(
                input_ids=torch.cat([given[0], given[2]], dim=1),
                attention_mask=torch.cat([given[1], given[3]], dim=1) if request.padded else None,
                use_cache=False,
            ).last_hidden_state
            watch.enter([])
            with_cache = watch.now()
            torch.clear_autocast_cache()
        kept = watch.now()
        cached = rows_of([with_cache])[0] - np.array(kept)
        told = (hidden.dtype, bool(hidden.requires_grad))
        if gradient and hidden.requires_grad:
            self._go_back(watch, hidden)
        instants = {name: rows_of(series) for name, series in watch.series.items() if series}
        return Pass(instants, rows_of([kept])[0], cached, told)

    def _go_back(self, watch: Timekeeper, hidden: torch.Tensor) -> None:
        """The way back from where the head has come to: its own gradients are there, and that of the hidden states.

        A head that is tied to the embeddings has its gradient wait for theirs, beside what was accumulated before.
        """
        head = self._base.get_output_embeddings()
        trained = [one for one in (head.parameters() if head is not None else ()) if one.requires_grad]
        loss = _Feed.apply(hidden, *trained)
        self._backward = True
        watch.enter(["back to the layers"])
        loss.backward()

    # --- where the pass is ---

    def _names(self, way: str, place: int) -> list[str]:
        """A layer has a name by its place from the start, from the end, or both; those between lie between these."""
        start, end = self._ends
        names = [f"{way} {place}"] if place < start else []
        return names + ([f"{way} {place - self._depth}"] if self._depth - place <= end else [])

    def _entering(self, place: int) -> Any:
        def hook(module: Any, args: Any, kwargs: Any) -> None:
            if self._watch is None or self._backward:
                return  # gradient checkpointing computes it anew
            self._watch.enter(self._names("forward", place))
            hidden = args[0] if args else kwargs.get("hidden_states")
            if place == 0 and isinstance(hidden, torch.Tensor) and hidden.requires_grad and torch.is_grad_enabled():
                hidden.register_hook(lambda gradient: self._enter(["behind the layers"]))

        return hook

    def _leaving(self, place: int) -> Any:
        def hook(module: Any, args: Any, output: Any) -> None:
            if self._watch is None or self._backward:
                return
            hidden = output[0] if isinstance(output, tuple) else output
            if torch.is_grad_enabled() and hidden.requires_grad:
                hidden.register_hook(lambda gradient: self._enter(self._names("backward", place)))
            self._watch.enter(["after the layers"])

        return hook

    def _enter(self, names: Sequence[str]) -> None:
        if self._watch is not None:
            self._watch.enter(names)


class _Feed(torch.autograd.Function):
    """Gives the hidden states and the head's parameters their gradients, and keeps nothing."""

    @staticmethod
    def forward(ctx: Any, *inputs: torch.Tensor) -> torch.Tensor:
        ctx.about = [(one.shape, one.dtype, one.device) for one in inputs]
        return inputs[0].new_empty(())

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(torch.empty(shape, dtype=dtype, device=device) for shape, dtype, device in ctx.about)


def _given(rows: int, request: TraceRequest) -> list[torch.Tensor]:
    """What TRL gives for a micro-batch: ids and masks of prompts and completions, and values for each token."""
    prompt = [torch.ones(rows, request.prompt_tokens, dtype=torch.long) for _ in range(2)]
    completion = [torch.ones(rows, request.completion_tokens, dtype=torch.long) for _ in range(2)]
    known = [torch.ones(rows, request.completion_tokens) for _ in range(request.old + request.reference)]
    return [*prompt, *completion, *known, torch.ones(rows)]
