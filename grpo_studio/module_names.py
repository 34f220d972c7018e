"""Names of a model's linear modules, read from the headers of its weight files: no torch, no weights."""

from __future__ import annotations

import json
import struct
from pathlib import Path

NOT_LINEAR = ("embed", "wte", "wpe", "norm", "ln_", "lm_head")
"""Parts of names of two-dimensional weights that are no linear layer, or the head."""
LARGEST_HEADER = 100_000_000


def linear_module_names(folder: Path) -> tuple[str, ...]:
    """Last names of the modules with a weight of two dimensions, in order of their names; empty when none can be read.

    The format of a header: eight bytes of length, little-endian, then JSON of name -> {dtype, shape, ...}.
    """
    names: dict[str, None] = {}
    for path in sorted(folder.glob("*.safetensors")):
        for name, tensor in _header(path).items():
            module = name.removesuffix(".weight").rpartition(".")[2]
            two = isinstance(tensor, dict) and len(tensor.get("shape", ())) == 2
            if two and name.endswith(".weight") and not any(part in module for part in NOT_LINEAR):
                names.setdefault(module)
    return tuple(names)


def _header(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            found = json.loads(file.read(length)) if length <= LARGEST_HEADER else {}
    except (OSError, ValueError, struct.error):
        return {}
    return found if isinstance(found, dict) else {}
