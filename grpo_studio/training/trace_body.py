"""The layers of a model, forward and backward, on fake tensors: what lived at each instant, stretch by stretch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from grpo_studio.memory.traced import TraceRequest
from grpo_studio.training.trace_lines import Array, Timeline, rows_of
from grpo_studio.training.trace_mode import FakeBytes

HELD, GRADIENTS, ACTIVATIONS, OTHER = "held", "gradients", "activations", "other"
COUNTED = (GRADIENTS, ACTIVATIONS, OTHER)


@dataclass(frozen=True)
class Pass:
    """What a pass over the layers took, in bytes by `COUNTED`.

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


class _Watch(FakeBytes):
    """Writes down every instant, under all names of the present stretch."""

    def __init__(self, as_cuda: bool, count: int) -> None:
        super().__init__(as_cuda, count)
        self.series: dict[str, list[tuple[int, ...]]] = {}
        self._open: list[list[tuple[int, ...]]] = []

    def enter(self, names: Sequence[str]) -> None:
        self._open = [self.series.setdefault(name, []) for name in names]
        self.grew()

    def now(self) -> tuple[int, ...]:
        return tuple(self.by_category.get(part, 0) for part in COUNTED)

    def grew(self) -> None:
        if self._open:
            now = self.now()
            for series in self._open:
                series.append(now)


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
        self._watch: _Watch | None = None
        self._backward = False
        for place, layer in enumerate(layers):
            layer.register_forward_pre_hook(self._entering(place), with_kwargs=True)
            layer.register_forward_hook(self._leaving(place))
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(self._accumulated)

    def run(self, rows: int, gradient: bool) -> Pass:
        """One pass over so many completions."""
        self._watch = watch = _Watch(self._request.device == "cuda", self._request.completion_tokens)
        self._backward = False
        watch.track(self.model, category=HELD)
        try:
            with watch, nullcontext() if gradient else torch.no_grad():
                return self._run(watch, rows, gradient)
        finally:
            self._watch = None
            torch.clear_autocast_cache()
            self.model.zero_grad(set_to_none=True)

    def _run(self, watch: _Watch, rows: int, gradient: bool) -> Pass:
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
        cached = rows_of([with_cache], len(COUNTED))[0] - kept
        told = (hidden.dtype, bool(hidden.requires_grad))
        if gradient and hidden.requires_grad:
            self._go_back(watch, _Feed.apply(hidden))
        instants = {name: rows_of(series, len(COUNTED)) for name, series in watch.series.items() if series}
        return Pass(instants, rows_of([kept], len(COUNTED))[0], cached, told)

    def _go_back(self, watch: _Watch, loss: torch.Tensor) -> None:
        head = self._base.get_output_embeddings()
        for parameter in [] if head is None else head.parameters():
            if parameter.requires_grad:  # the head comes first on the way back
                parameter.grad = torch.zeros_like(parameter)
                watch.recategorize(parameter.grad, GRADIENTS)
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

    def _accumulated(self, parameter: torch.Tensor) -> None:
        if self._watch is not None and parameter.grad is not None:
            self._watch.recategorize(parameter.grad, GRADIENTS)


class _Feed(torch.autograd.Function):
    """Gives the hidden states their gradient, and keeps nothing."""

    @staticmethod
    def forward(ctx: Any, hidden: torch.Tensor) -> torch.Tensor:
        ctx.about = (hidden.shape, hidden.dtype, hidden.device)
        return hidden.new_empty(())

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        shape, dtype, device = ctx.about
        return torch.empty(shape, dtype=dtype, device=device)


def _given(rows: int, request: TraceRequest) -> list[torch.Tensor]:
    """What TRL gives for a micro-batch: ids and masks of prompts and completions, and values for each token."""
    prompt = [torch.ones(rows, request.prompt_tokens, dtype=torch.long) for _ in range(2)]
    completion = [torch.ones(rows, request.completion_tokens, dtype=torch.long) for _ in range(2)]
    known = [torch.ones(rows, request.completion_tokens) for _ in range(request.old + request.reference)]
    return [*prompt, *completion, *known, torch.ones(rows)]
