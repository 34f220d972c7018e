"""The groups of a step, and one group with all that its verifiers said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from grpo_studio.queries.current import first_and_last, integers
from grpo_studio.queries.texts import SHORT_TEXT
from grpo_studio.store.reader import RunReader, current

STRIP_ROWS, STRIP_SQUARES = 64, 64
INSPECTOR_COMPLETIONS = 64
SEEN_WITHIN = 2_000
"""Groups before and after a group among which its prompt is looked for."""


def nearest_group_step(reader: RunReader, step: int) -> int | None:
    """The step with training groups at or before `step`, else the first after it; None when there is none."""
    before = first_and_last(reader, "prompt_group", "split = 'train' AND step <= ?", (step,))
    if before is not None:
        return before[1]
    after = first_and_last(reader, "prompt_group", "split = 'train' AND step > ?", (step,))
    return None if after is None else after[0]


def groups_of_step(reader: RunReader, step: int) -> pd.DataFrame:
    """Columns group, prompt (its first 200 characters), mean, spread, reward, advantage: one row a completion."""
    rows = reader.rows(
        f"SELECT shown.id, substr(shown.prompt, 1, 200), shown.reward_mean, shown.reward_std, c.reward, c.advantage "
        f"FROM (SELECT * FROM prompt_group WHERE split = 'train' AND step = ? AND {current(reader)} "
        f"ORDER BY id LIMIT ?) shown "
        "LEFT JOIN completion c ON c.group_id = shown.id "
        "ORDER BY shown.id, c.advantage IS NULL, c.advantage DESC, c.idx",
        (step, STRIP_ROWS),
    )
    return pd.DataFrame(rows, columns=["group", "prompt", "mean", "spread", "reward", "advantage"])


def group(reader: RunReader, group_id: int) -> dict[str, Any] | None:
    """One group: its prompt, gold, mean, spread and number of completions. None when there is no such group."""
    rows = reader.rows(
        "SELECT id, step, substr(prompt, 1, ?), length(prompt), answer, reward_mean, reward_std, "
        "(SELECT count(*) FROM completion WHERE group_id = prompt_group.id) "
        "FROM prompt_group WHERE id = ?",
        (SHORT_TEXT, group_id),
    )
    if not rows:
        return None
    return dict(
        zip(("id", "step", "prompt", "prompt_length", "answer", "mean", "spread", "total"), rows[0], strict=True)
    )


@dataclass(frozen=True)
class Seen:
    """Steps near a group at which its prompt was trained on; `first` when it is known that none came before it."""

    steps: list[int]
    first: bool


def seen_at(reader: RunReader, group_id: int, most: int = 8) -> Seen:
    """The steps nearest to this group's own at which its prompt was trained on, oldest first."""
    rows = reader.rows(
        f"SELECT DISTINCT step FROM prompt_group WHERE id BETWEEN ? AND ? AND +split = 'train' AND {current(reader)} "
        "AND prompt = (SELECT prompt FROM prompt_group WHERE id = ?)",
        (group_id - SEEN_WITHIN, group_id + SEEN_WITHIN, group_id),
    )
    own = reader.rows("SELECT step FROM prompt_group WHERE id = ?", (group_id,))[0][0]
    steps = sorted(int(row[0]) for row in rows)
    first = bool(steps) and steps[0] == own and group_id <= SEEN_WITHIN
    return Seen(sorted(sorted(steps, key=lambda step: abs(step - own))[:most]), first)


def completions(reader: RunReader, group_id: int) -> pd.DataFrame:
    """The completions of a group, best advantage first; texts are cut at `SHORT_TEXT`, `length` is the whole."""
    rows = reader.rows(
        "SELECT id, idx, substr(text, 1, ?), length(text), tokens, truncated, reward, advantage FROM completion "
        "WHERE group_id = ? ORDER BY advantage IS NULL, advantage DESC, idx LIMIT ?",
        (SHORT_TEXT, group_id, INSPECTOR_COMPLETIONS),
    )
    columns = ["id", "idx", "text", "length", "tokens", "truncated", "reward", "advantage"]
    return pd.DataFrame(rows, columns=columns)


def scores(reader: RunReader, completion_ids: Sequence[int]) -> pd.DataFrame:
    """Columns completion, verifier, value, weight, reason, extracted, outcome; `value` is NaN where it abstained."""
    rows = reader.rows(
        "SELECT completion_id, verifier, value, weight, substr(reason, 1, 500), substr(extracted, 1, 200), outcome "
        f"FROM score WHERE completion_id IN ({integers(completion_ids)})"
    )
    columns = ["completion", "verifier", "value", "weight", "reason", "extracted", "outcome"]
    return pd.DataFrame(rows, columns=columns).astype({"value": float, "weight": float})
