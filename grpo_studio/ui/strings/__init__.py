"""Every word that a person sees in the pages, one file a language, nested by page."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


@cache
def load(language: str = "en") -> dict[str, Any]:
    """The table of a language, nested by page ("frame", "live", ...)."""
    table: dict[str, Any] = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return table
