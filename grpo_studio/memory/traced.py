"""What a trace of a model is asked for and what it tells: plain values, JSON both ways. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

LOSS_PARTS = ("gradients", "activations", "logits_and_loss", "other")
"""What the loss phase takes on top of weights, adapter, reference and optimizer."""
Backend = Literal["full", "trl", "liger"]
BACKENDS: tuple[Backend, ...] = ("full", "trl", "liger")
Parts = Mapping[str, int]
Moments = Mapping[str, Parts]
"""By the name of a stretch of the pass, what was alive when it took most."""


@dataclass(frozen=True)
class TraceRequest:
    """All that a trace depends on; every backend is traced, at batches of the tracer's choice.

    Args:
        config: the model's config.json.
        dtype: of the weights as they are loaded; "mixed" is float32 with `autocast`.
        attention: what the run asks transformers for; None is its default.
        lora_targets: `all-linear` or names by commas, as `memory.lora_targets`.
        chunk_size: completions in a chunk of Liger's loss; None as in the settings.
        by_token: whether the ratio is per token (`importance_sampling_level`).
        reference, old: whether the loss is told of a reference's log-probs (beta > 0), of the sampler's.
        entropy: whether entropies carry gradient (a bonus, or a quantile of them).
        device: where the run computes: on a GPU the heads of TRL and Liger run other code.
        padded: whether prompts differ in length, so that attention gets a mask.
    """

    config: Mapping[str, Any]
    prompt_tokens: int
    completion_tokens: int
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    autocast: bool = False
    attention: str | None = None
    adapter: Literal["none", "lora"] = "none"
    lora_rank: int = 16
    lora_targets: str = "all-linear"
    lora_dropout: float = 0.0
    checkpointing: bool = False
    chunk_size: int | None = None
    loss_type: str = "dapo"
    by_token: bool = True
    reference: bool = False
    old: bool = False
    entropy: bool = False
    temperature: float = 1.0
    device: Literal["cpu", "cuda"] = "cuda"
    padded: bool = True

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"config": dict(self.config)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TraceRequest:
        """Raises TypeError or KeyError for values that are not of a request."""
        return cls(**_known(cls, values))


@dataclass(frozen=True)
class ModelBytes:
    """A model's own numbers, counted from its modules at full depth; they are counts, not bytes, but where said.

    Args:
        parameters: numbers of the model without an adapter; tied ones count once.
        trainable: numbers that are trained.
        adapter_parameters: numbers of the adapter.
        weights: bytes of the model's parameters as loaded.
        quantizable: numbers in the linear layers but the head: those that QLoRA holds in 4 bits.
        largest_linear: numbers in the largest of those.
        layer: numbers of the largest transformer layer.
        embeddings: numbers of the embeddings and, unless tied, the head.
        buffers: bytes of buffers.
        layers: transformer layers.
        adapter_bytes: bytes of the adapter.
        trainable_bytes: bytes of what is trained.
        largest_trainable: bytes of the largest trained tensor.
    """

    parameters: int
    trainable: int
    adapter_parameters: int
    weights: int
    quantizable: int
    largest_linear: int
    layer: int
    embeddings: int
    buffers: int
    layers: int
    adapter_bytes: int = 0
    trainable_bytes: int = 0
    largest_trainable: int = 0

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ModelBytes:
        return cls(**_known(cls, values))


@dataclass(frozen=True)
class TracedBatch:
    """One pass over so many completions, at full depth.

    Args:
        first: the moments of a step's first micro-batch, in which gradients come to be.
        later: those of its later ones, with all gradients there from the start.
    """

    micro_batch: int
    first: Moments
    later: Moments = field(default_factory=dict)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TracedBatch:
        return cls(**_known(cls, values))


@dataclass(frozen=True)
class Traced:
    """What a trace found.

    Args:
        loss: for each backend the traced batches, smallest first.
        forward: the same for a pass without gradient.
        untraced: for backends that cannot do this model's loss, why.
        notes: what a person should know of the trace.
        seconds: what it took.
    """

    model: ModelBytes
    loss: Mapping[str, Sequence[TracedBatch]]
    forward: Mapping[str, Sequence[TracedBatch]]
    untraced: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    def loss_parts(self, backend: str, micro_batch: int, accumulates: bool = True) -> dict[str, int]:
        """What forward and backward take at their greatest moment, on top of weights, adapter, reference and optimizer.

        Args:
            backend: one of `loss`; KeyError for another.
            micro_batch: completions in the pass.
            accumulates: whether a step has several micro-batches: all gradients are then there from the second on.
        """
        batches = self.loss[backend]
        first = _greatest([(batch.micro_batch, batch.first) for batch in batches], micro_batch)
        if not accumulates:
            return first
        later = _greatest([(batch.micro_batch, batch.later) for batch in batches], micro_batch)
        return max(first, later, key=_total)

    def forward_parts(self, backend: str, micro_batch: int) -> dict[str, int]:
        """What a pass without gradient takes: a reference's log-probs, or the old ones."""
        return _greatest([(batch.micro_batch, batch.first) for batch in self.forward[backend]], micro_batch)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"notes": list(self.notes)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Traced:
        """Raises TypeError or KeyError for values that are not of a trace."""
        passes = {
            name: {backend: tuple(TracedBatch.from_dict(batch) for batch in found) for backend, found in kind.items()}
            for name, kind in (("loss", values["loss"]), ("forward", values["forward"]))
        }
        rest = _known(cls, values) | {"model": ModelBytes.from_dict(values["model"])}
        return cls(**(rest | passes | {"notes": tuple(values.get("notes", ()))}))


def on_line(first: tuple[int, Parts], second: tuple[int, Parts], at: int) -> dict[str, int]:
    """The value at `at` of the straight line through two points, part by part; never below 0."""
    (x1, y1), (x2, y2) = first, second
    return {
        part: max(0, round(y1.get(part, 0) + (y2.get(part, 0) - y1.get(part, 0)) * (at - x1) / (x2 - x1)))
        for part in dict.fromkeys((*y1, *y2))
    }


def _greatest(points: Sequence[tuple[int, Moments]], at: int) -> dict[str, int]:
    """The greatest moment at a batch; each moment is a line between the batches it was traced at."""
    if len(points) == 1:
        moments = [dict(parts) for parts in points[0][1].values()]
    else:
        place = min(max(bisect_left([batch for batch, _ in points], at), 1), len(points) - 1)
        (x1, before), (x2, after) = points[place - 1], points[place]
        moments = [on_line((x1, before[name]), (x2, after[name]), at) for name in before if name in after]
    found = max(moments, key=_total)
    return {part: found.get(part, 0) for part in LOSS_PARTS}


def _total(parts: Parts) -> int:
    return sum(parts.values())


def _known(cls: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a dataclass's fields; what else a later version wrote is left out."""
    names = {one.name for one in fields(cls)}
    return {name: value for name, value in values.items() if name in names}
