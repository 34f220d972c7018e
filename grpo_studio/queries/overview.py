"""All steps at a glance: the mini-map of groups and the heat map of advantages."""

from __future__ import annotations

import pandas as pd

from grpo_studio.queries.current import first_and_last, integers
from grpo_studio.queries.steps import thinned
from grpo_studio.store.reader import RunReader, current

MINIMAP_COLUMNS, MINIMAP_ROWS = 160, 16
HEAT_COLUMNS = 120


def group_range(reader: RunReader) -> tuple[int, int]:
    """First and last step that has training groups; (0, 0) when there is none."""
    return first_and_last(reader, "prompt_group", "split = 'train'") or (0, 0)


def minimap(reader: RunReader, last_columns: int = MINIMAP_COLUMNS) -> pd.DataFrame:
    """Columns step, row (0 first), mean, spread: groups of evenly spaced steps, at most `MINIMAP_ROWS` a step."""
    shown = _group_steps(reader, last_columns)
    if not shown:
        return pd.DataFrame(columns=["step", "row", "mean", "spread"])
    rows = reader.rows(
        f"SELECT step, row_number() OVER (PARTITION BY step ORDER BY id) - 1 AS place, reward_mean, reward_std "
        f"FROM prompt_group WHERE split = 'train' AND step IN ({integers(shown)}) AND {current(reader)} ORDER BY id"
    )
    kept = [row for row in rows if row[1] < MINIMAP_ROWS]
    return pd.DataFrame(kept, columns=["step", "row", "mean", "spread"])


def advantages(reader: RunReader, columns: int = HEAT_COLUMNS) -> pd.DataFrame:
    """Columns step, advantage: every training completion of evenly spaced steps."""
    shown = _group_steps(reader, columns)
    if not shown:
        return pd.DataFrame(columns=["step", "advantage"])
    rows = reader.rows(
        f"SELECT g.step, c.advantage FROM prompt_group g CROSS JOIN completion c ON c.group_id = g.id "
        f"WHERE g.split = 'train' AND g.step IN ({integers(shown)}) "
        f"AND c.advantage IS NOT NULL AND {current(reader, 'g')}"
    )
    return pd.DataFrame(rows, columns=["step", "advantage"])


def _group_steps(reader: RunReader, columns: int) -> list[int]:
    first, last = group_range(reader)
    return thinned(range(first, last + 1), columns) if last else []
