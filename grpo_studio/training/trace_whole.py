"""A whole trace: the layers at two depths and two batches, each backend's head at several, as at full depth."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grpo_studio.memory.traced import BACKENDS, LOSS_PARTS, Traced, TracedBatch, TraceRequest
from grpo_studio.shown import shown
from grpo_studio.training.policy_head import TOKEN_LOGITS
from grpo_studio.training.trace_body import Pass
from grpo_studio.training.trace_heads import UP, chunk_rows, scaled_again
from grpo_studio.training.trace_lines import Array, Timeline, at_depth, lines, upper, values_at
from grpo_studio.training.trace_mode import heads_as_on
from grpo_studio.training.trace_model import TracedModel

BATCHES = (2, 3)
"""Batches that the layers are traced at: of one alone, some tensors have another layout."""
TRL_TILE = 4096
LIGER_TILE = 2048
"""Tokens in a tile of TRL's head (`TOKEN_CHUNK_SIZE`), and of Liger's (`_SELECTIVE_LOGPROB_SEQ_CHUNK_SIZE`)."""
MANY_TILES = (2, 4, 8)
"""Full tiles or chunks that a head is traced at, so that what grows with the batch shows beside what a tile takes."""
MOST_TILES = 16
"""Chunks of Liger's up to which its other tiles are looked for; past them a forecast is too high, never too low."""


@dataclass(frozen=True)
class Layers:
    """The layers at full depth, as lines in the batch by `LOSS_PARTS`.

    Args:
        first, later: (lines, 2, parts), of a step's first micro-batch and of a later one.
        kept, cached: (1, 2, parts), what stays until the way back, and what autocast keeps until the head is done.
        gradients: bytes of all.
    """

    first: Array
    later: Array
    kept: Array
    cached: Array
    gradients: int


def trace(model: TracedModel) -> Traced:
    """Raises what the modules raise; a backend that alone cannot be traced is told of instead."""
    began = time.perf_counter()
    request = model.request
    bodies = model.bodies
    with model.fake:
        learning = [[body.run(rows, True) for rows in BATCHES] for body in bodies]
        passing = [bodies[0].run(rows, False) for rows in BATCHES]  # it keeps nothing of a layer that it has left
    layers = layers_at_full(model, learning, model.bytes.trainable_bytes)
    without = layers_at_full(model, [passing], 0)
    heads = model.heads(learning[0][0].hidden)
    loss: dict[str, tuple[TracedBatch, ...]] = {}
    forward: dict[str, tuple[TracedBatch, ...]] = {}
    untraced: dict[str, str] = {}
    for backend in BACKENDS:
        try:
            with heads_as_on(request.device, scaled_again(request)):
                at = batches(request, backend, heads.vocabulary)
                loss[backend] = joined(layers, at, [heads.loss(backend, rows) for rows in at])
                forward[backend] = joined(without, at, [heads.forward(backend, rows) for rows in at])
        except Exception as error:
            if backend != "liger":
                raise
            untraced[backend] = f"{type(error).__name__}: {shown(str(error), 200)}"
    return Traced(model.bytes, loss, forward, untraced, model.notes, time.perf_counter() - began)


def batches(request: TraceRequest, backend: str, vocabulary: int) -> list[int]:
    """Batches to trace a head at: between them its instants are straight lines, as its tiles are full at one of them.

    Args:
        vocabulary: rows of the output layer.
    """
    tokens = request.completion_tokens
    if backend == "full":
        return [1, 2, 4]
    if backend == "liger":
        tile = chunk_rows(request)
        full = [tile, LIGER_TILE // tokens, (TOKEN_LOGITS // vocabulary) // tokens]
    else:  # on a CPU TRL's head takes the prompt's tokens, too
        tile = -(-TRL_TILE // tokens)
        full = [TRL_TILE // (tokens if request.device == "cuda" else tokens + request.prompt_tokens)]
    sides = {side for rows in full for side in (rows, rows + 1) if 0 < side <= MOST_TILES * tile}
    return sorted({1, 2, *sides, *(count * tile for count in MANY_TILES)})


def layers_at_full(model: TracedModel, passes: Sequence[Sequence[Pass]], gradients: int) -> Layers:
    """The layers at full depth, from passes at each depth and batch."""
    depths, full = model.depth.traced, model.depth.full

    def whole(place: int) -> dict[str, Timeline]:
        low, high = passes[0][place], passes[-1][place]
        single = [{"kept": one.kept[None], "cached": one.cached[None]} for one in (low, high)]
        return {
            "instants": at_depth(depths, full, low.instants, high.instants),
            "single": at_depth(depths, full, single[0], single[1]),
        }

    small, large = whole(0), whole(1)
    of_instants = lines(BATCHES, small["instants"], large["instants"])

    def of_single(name: str) -> Array:
        return lines(BATCHES, {name: small["single"][name]}, {name: large["single"][name]})

    return Layers(
        upper(of_instants), upper(_with_all(of_instants, gradients)), of_single("kept"), of_single("cached"), gradients
    )


def joined(layers: Layers, at: Sequence[int], heads: Sequence[Timeline]) -> tuple[TracedBatch, ...]:
    """The layers together with a head that was traced at several batches, in pieces from each of them to the next."""
    first = [_moments(layers.first, rows) for rows in at]
    later = [_moments(layers.later, rows) for rows in at]
    for place in range(len(at) - 1):
        ends = (at[place], at[place + 1])
        for name, series in heads[place].items():
            found = lines(ends, {name: series}, {name: heads[place + 1][name]})
            found = found + layers.kept + (layers.cached if name == UP else 0.0)
            for end in (place, place + 1):
                piece = f"{name} from {ends[0]}"
                first[end] |= _moments(upper(found), at[end], piece)
                later[end] |= _moments(upper(_with_all(found, layers.gradients)), at[end], piece)
    return tuple(TracedBatch(*of) for of in zip(at, first, later, strict=True))


def _with_all(found: Array, gradients: int) -> Array:
    """Lines with all gradients there, in the place of those that have come to be."""
    changed = found.copy()
    changed[:, :, LOSS_PARTS.index("gradients")] = (gradients, 0)
    return changed


def _moments(found: Array, rows: int, name: str = "layers") -> dict[str, dict[str, int]]:
    values = np.round(values_at(found, rows)).astype(int).tolist()
    return {f"{name} {place}": dict(zip(LOSS_PARTS, value, strict=True)) for place, value in enumerate(values)}
