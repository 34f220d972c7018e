"""How LoRA targets are written in a setting: `all-linear`, or names of modules by commas. No torch."""

from __future__ import annotations

ALL_LINEAR = "all-linear"
HEAD_NAMES = frozenset({"lm_head", "embed_out", "output_layer"})
"""Names that architectures give their output layer, which no adapter may sit on."""


def target_names(targets: str) -> list[str] | None:
    """The names, without repeats; None for all linear modules."""
    names = [name for part in targets.split(",") if (name := part.strip())]
    return None if names == [ALL_LINEAR] else list(dict.fromkeys(names))
