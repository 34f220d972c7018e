"""A whole trace: the layers at two depths and two batches, each backend's head at several, as at full depth."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_studio.memory.traced import BACKENDS, LOSS_PARTS, Parts, Traced, TracedBatch, TraceRequest
from grpo_studio.shown import shown
from grpo_studio.training.policy_head import TOKEN_LOGITS
from grpo_studio.training.trace_body import COUNTED, Pass
from grpo_studio.training.trace_heads import Heads, chunk_rows, scaled_again
from grpo_studio.training.trace_lines import Array, at_depth, lines, upper, values_at
from grpo_studio.training.trace_mode import heads_as_on
from grpo_studio.training.trace_model import TracedModel

BATCHES = (2, 3)
"""Batches that the layers are traced at: of one alone, some tensors have another layout."""
TRL_TILE = 4096
LIGER_TILE = 2048
"""Tokens in a tile of TRL's head (`TOKEN_CHUNK_SIZE`), and of Liger's (`_SELECTIVE_LOGPROB_SEQ_CHUNK_SIZE`)."""
MANY_TILES = 8
"""Tiles after which what grows with the batch outweighs what a tile takes."""
GRADIENTS, ACTIVATIONS, LOGITS, OTHER = LOSS_PARTS


@dataclass(frozen=True)
class _Layers:
    """The layers at full depth, as lines in the batch: (lines, 2, parts) and, of single values, (1, 2, parts)."""

    first: Array
    later: Array
    kept: Array
    cached: Array


def trace(model: TracedModel) -> Traced:
    """Raises what the modules raise; a backend that alone cannot be traced is told of instead."""
    began = time.perf_counter()
    request = model.request
    bodies = model.bodies
    with model.fake:
        learning = [[body.run(rows, True) for rows in BATCHES] for body in bodies]
        passing = [[body.run(rows, False) for rows in BATCHES] for body in bodies[:1]]
    layers = _layers(model, learning, model.bytes.trainable_bytes)
    without = _layers(model, [passing[0], passing[0]], 0)
    heads = model.heads(learning[0][0].hidden)
    loss: dict[str, tuple[TracedBatch, ...]] = {}
    forward: dict[str, tuple[TracedBatch, ...]] = {}
    untraced: dict[str, str] = {}
    for backend in BACKENDS:
        try:
            with heads_as_on(request.device, scaled_again(request)):
                at = batches(request, backend, heads.vocabulary)
                loss[backend] = tuple(_loss(layers, heads, backend, rows, model.bytes.trainable_bytes) for rows in at)
                forward[backend] = tuple(_forward(without, heads, backend, rows) for rows in at)
        except Exception as error:
            if backend != "liger":
                raise
            untraced[backend] = f"{type(error).__name__}: {shown(str(error), 200)}"
    return Traced(model.bytes, loss, forward, untraced, (), time.perf_counter() - began)


def batches(request: TraceRequest, backend: str, vocabulary: int) -> list[int]:
    """Batches to trace a head at: between them its peak is a straight line, as every tile of it is full at one of them.

    Args:
        vocabulary: rows of the output layer.
    """
    tokens = request.completion_tokens
    if backend == "full":
        return [1, 2, 4]
    if backend == "liger":
        chunk = chunk_rows(request)
        full = [chunk, LIGER_TILE // tokens, (TOKEN_LOGITS // vocabulary) // tokens]
    else:  # on a CPU TRL's head takes the prompt's tokens, too
        chunk = -(-TRL_TILE // tokens)
        full = [TRL_TILE // (tokens if request.device == "cuda" else tokens + request.prompt_tokens)]
    sides = {side for rows in full for side in (rows, rows + 1) if side > 0}
    return sorted({1, 2, *sides, 2 * max(chunk, *full), MANY_TILES * max(chunk, *full)})


def _layers(model: TracedModel, passes: Sequence[Sequence[Pass]], gradients: int) -> _Layers:
    depths, full = model.depth.traced, model.depth.full

    def whole(of: Sequence[Pass]) -> Pass:
        """One of the batches at full depth."""
        low, high = of
        single = at_depth(
            depths, full, {"kept": low.kept[None], "cached": low.cached[None]},
            {"kept": high.kept[None], "cached": high.cached[None]},
        )  # fmt: skip
        return Pass(
            at_depth(depths, full, low.instants, high.instants), single["kept"][0], single["cached"][0], low.hidden
        )

    small, large = (whole([passes[0][place], passes[1][place]]) for place in range(2))
    first = lines(BATCHES, small.instants, large.instants)
    later = first.copy()
    later[:, 0, COUNTED.index(GRADIENTS)] = gradients
    later[:, 1, COUNTED.index(GRADIENTS)] = 0
    kept = lines(BATCHES, {"kept": small.kept[None]}, {"kept": large.kept[None]})
    cached = lines(BATCHES, {"cached": small.cached[None]}, {"cached": large.cached[None]})
    return _Layers(upper(first), upper(later), kept, cached)


def _loss(layers: _Layers, heads: Heads, backend: str, rows: int, gradients: int) -> TracedBatch:
    first, later = heads.loss(backend, rows)
    return TracedBatch(
        rows,
        _moments(layers.first, rows) | _with_layers(layers, first, rows),
        _moments(layers.later, rows)
        | _with_layers(layers, {name: {**found, GRADIENTS: gradients} for name, found in later.items()}, rows),
    )


def _forward(layers: _Layers, heads: Heads, backend: str, rows: int) -> TracedBatch:
    found = _with_layers(layers, heads.forward(backend, rows), rows)
    return TracedBatch(rows, _moments(layers.first, rows) | found)


def _moments(found: Array, rows: int) -> dict[str, dict[str, int]]:
    return {f"layers {place}": _parts(value) for place, value in enumerate(values_at(found, rows))}


def _with_layers(layers: _Layers, moments: Mapping[str, Parts], rows: int) -> dict[str, dict[str, int]]:
    """The moments of a head together with what the layers keep meanwhile."""
    kept = values_at(layers.kept, rows)[0]
    found = {}
    for name, parts in moments.items():
        below = _parts(kept + values_at(layers.cached, rows)[0] if name == "head" else kept)
        found[name] = {part: below[part] + parts.get(part, 0) for part in LOSS_PARTS}
        found[name][GRADIENTS] = parts.get(GRADIENTS, 0)
    return found


def _parts(value: Array) -> dict[str, int]:
    counted = dict(zip(COUNTED, np.round(value).astype(int).tolist(), strict=True))
    return {part: counted.get(part, 0) for part in LOSS_PARTS}
