"""Which small depths of a model stand for all its layers: a first stretch, then a pattern that repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grpo_studio.errors import ModelError

LONGEST_PATTERN = 12
"""Layers of a pattern that is traced twice; a longer one would take too long."""
DEPTH_NAMES = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


@dataclass(frozen=True)
class Depth:
    """Two small depths that stand for the whole.

    Args:
        full: layers of the model.
        traced: the two depths; equal when the model has no more.
        kept: for each of them the layers of the whole that it keeps.
        ends: layers at the start and at the end that stand for the same ones in every depth.
    """

    full: int
    traced: tuple[int, int]
    kept: tuple[tuple[int, ...], tuple[int, ...]]
    ends: tuple[int, int]

    @classmethod
    def of(cls, layers: Sequence[Any], alike: bool) -> Depth:
        """The smallest depths that do.

        Args:
            alike: whether the first layer keeps what the others do: else it is left out of the pattern.

        Raises:
            ModelError: the layers repeat in no pattern.
        """
        kinds = [_kind(layer) for layer in layers]
        start, period = _pattern(kinds)
        repeats = (len(kinds) - start) // period
        base = len(kinds) - period * repeats  # the first stretch and what of the pattern is left over at the end
        few = min(1 if alike or start + period > 1 else 2, repeats)
        depths = [base + period * count for count in dict.fromkeys((few, min(few + 1, repeats)))]
        depths = depths if len(depths) == 2 else [depths[0], depths[0]]
        rest = base - start
        kept = [(*range(depth - rest), *range(len(kinds) - rest, len(kinds))) for depth in depths]
        return cls(len(kinds), (depths[0], depths[1]), (kept[0], kept[1]), (start + period, rest + period))

    def shortened(self, config: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """The config with so many layers; what it lists for each layer is cut alike."""
        if depth == self.full:
            return dict(config)
        return _cut(config, self.full, self.kept[self.traced.index(depth)])


def decoder_layers(model: Any, config: Mapping[str, Any]) -> list[Any]:
    """The transformer layers of a model, in order.

    Raises:
        ModelError: it has none.
    """
    lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList) and len(module)]
    inner = config.get("text_config")
    count = _layers_in(config) or _layers_in(inner if isinstance(inner, Mapping) else {})
    fitting = [module for module in lists if len(module) == count] or lists
    if not fitting:
        raise ModelError("the model has no list of layers to trace; go by the closed form")
    found = max(fitting, key=lambda module: sum(one.numel() for one in module.parameters()))
    return list(found)


def _layers_in(config: Mapping[str, Any]) -> int | None:
    return next((config[name] for name in DEPTH_NAMES if isinstance(config.get(name), int)), None)


def _kind(layer: Any) -> tuple[Any, ...]:
    """What tells layers apart: their modules and the shapes of what these hold."""
    return (type(layer).__name__, *((name, tuple(one.shape)) for name, one in layer.named_parameters()))


def _pattern(kinds: Sequence[Any]) -> tuple[int, int]:
    """Where a pattern begins, and how long it is."""
    for period in range(1, min(LONGEST_PATTERN, len(kinds)) + 1):
        start = len(kinds) - period
        while start > 0 and kinds[start - 1] == kinds[start - 1 + period]:
            start -= 1
        if start + 2 * period <= len(kinds) and start <= LONGEST_PATTERN:
            return start, period
    if len(kinds) <= LONGEST_PATTERN:
        return 0, len(kinds)
    raise ModelError(
        f"the model's {len(kinds)} layers are of kinds that repeat in no pattern of up to {LONGEST_PATTERN}; "
        "go by the closed form"
    )


def _cut(config: Mapping[str, Any], full: int, kept: Sequence[int]) -> dict[str, Any]:
    cut: dict[str, Any] = {}
    for name, value in config.items():
        if name in DEPTH_NAMES and value == full:
            cut[name] = len(kept)
        elif isinstance(value, Mapping):
            cut[name] = _cut(value, full, kept)
        elif isinstance(value, list) and len(value) == full and full > 1:
            cut[name] = [value[place] for place in kept]
        elif isinstance(value, str) and len(value) == full and "pattern" in name:  # a letter a layer, as Nemotron-H
            cut[name] = "".join(value[place] for place in kept)
        else:
            cut[name] = value
    return cut
