"""What tests of `check` share: verifier files of a person's own, rows with golds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grpo_studio.looks import QuickLook, ScanCache
from grpo_studio.preflight import CheckReport, check
from grpo_studio.settings import Settings


def add_verifier(settings: Settings, name: str, source: str) -> Path:
    """Put a verifier file into the home folder."""
    path = settings.home / "rewards" / f"{name}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    return path


def check_rewards(
    settings: Settings,
    model: Path,
    rows_in: Path,
    rewards: list[dict[str, Any]],
    golds: list[Any] | None = None,
    **columns: Any,
) -> CheckReport:
    """Check rewards against rows with these golds, 40 times "12" when none are given, as the launch page does."""
    golds = ["12"] * 40 if golds is None else golds
    rows = [{"prompt": f"What is {number}?", "answer": gold, **columns} for number, gold in enumerate(golds)]
    rows_in.write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = {"source": str(rows_in), "held_out": 0}
    look = QuickLook(ScanCache())
    return check({"model": {"id": str(model)}, "dataset": dataset, "rewards": rewards}, settings, look)
