"""Cells of data sets as plain data."""

from __future__ import annotations

from typing import Any


def plain(value: Any) -> Any:
    """For `json.dumps(default=...)`: what data sets hold besides JSON's own: NumPy scalars and arrays, sets, dates."""
    for method in ("tolist", "item"):
        convert = getattr(value, method, None)
        if callable(convert):
            return convert()
    return sorted(value, key=str) if isinstance(value, set | frozenset) else str(value)
