"""How LoRA targets are written in a setting: `all-linear`, or names of modules by commas. No torch."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from grpo_studio.naming import names_in

ALL_LINEAR = "all-linear"
HEAD_NAMES = frozenset({"lm_head", "embed_out", "output_layer"})
"""Names that architectures give their output layer, which no adapter may sit on."""


def target_names(targets: str) -> list[str] | None:
    """The names, without repeats; None for all linear modules."""
    names = names_in(targets)
    return None if names == [ALL_LINEAR] else list(dict.fromkeys(names))


def unknown_targets(names: Sequence[str], linear: Collection[str]) -> list[str]:
    """Those of `names` that end in the name of none of the linear modules; PEFT matches by the last part too."""
    return [name for name in names if name.rpartition(".")[2] not in linear]
