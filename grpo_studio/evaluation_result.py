"""What the command `evaluate` answers: the scores of one evaluation against where the run began."""

from __future__ import annotations

from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.errors import StoreError
from grpo_studio.evaluation_passing import labels_of, pass_rule
from grpo_studio.evaluation_text import as_json, lines_of
from grpo_studio.queries.before_after import compared
from grpo_studio.queries.evaluated import Evaluation, evaluated_rows, evaluations_of, find_evaluation
from grpo_studio.store.folder import RunFolder


def result(folder: RunFolder, config: RunConfig, key: str, seconds: float) -> tuple[dict[str, Any], list[str], int]:
    """The JSON document, the lines for people, and the exit code, for an evaluation that was just written.

    Args:
        key: of the evaluation.
        seconds: that it took.

    Raises:
        StoreError: it is gone again, or cannot be read.
    """
    made = find_evaluation(folder, key)
    if made is None:
        raise StoreError(f"the evaluation {key} of {folder.run_id} is gone; evaluate it again")
    rule, labels = pass_rule(config), labels_of(config)
    rows = evaluated_rows(made, rule)
    document: dict[str, Any] = {
        "run": folder.run_id,
        "evaluation": made.key,
        "checkpoint": made.checkpoint,
        "step": made.step,
        "rows": len(rows.rows),
        "seconds": seconds,
    }
    baseline = _baseline(folder, made)
    alone = compared(rows, rows, rule, labels)
    if baseline is None:
        comparison, note = alone, ["this run has no other evaluation to compare it with: both columns are this one"]
    else:
        comparison, note = compared(evaluated_rows(baseline, rule), rows, rule, labels), []
    document |= {"scores": as_json(alone), "comparison": None if baseline is None else as_json(comparison)}
    return document, [f"{folder.run_id}: {made.key}", *note, *lines_of(comparison)], 0


def _baseline(folder: RunFolder, made: Evaluation) -> Evaluation | None:
    """The earliest of the run's own evaluations, or one of the base model; not the very one that was just made."""
    others = [one for one in evaluations_of(folder) if one.key != made.key]
    return min(others, key=lambda one: (one.step, one.checkpoint is not None), default=None)
