"""From the store to pandas frames, bounded in size whatever the run's length; the newest row is always kept.

After a resume the rows past its checkpoint stay in the file; every query here leaves those superseded rows out.
Imports neither torch nor gradio.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from grpo_studio.store.reader import Event, RunReader

POINTS = 600
MINIMAP_COLUMNS, MINIMAP_ROWS = 160, 16
HEAT_COLUMNS = 120
STRIP_ROWS, STRIP_SQUARES = 64, 64
INSPECTOR_COMPLETIONS = 64
EVENTS = 300
SHORT_TEXT, LONG_TEXT = 4_000, 1_000_000


@dataclass(frozen=True)
class Steps:
    """The steps of a run that are drawn: at most `POINTS`, evenly spaced, and the last one always among them."""

    first: int
    last: int
    shown: tuple[int, ...]

    @property
    def empty(self) -> bool:
        return not self.shown


def current(reader: RunReader, table: str = "") -> str:
    """An SQL condition that is true for rows that no later attempt has superseded. Made of integers only."""
    starts = reader.rows(
        "SELECT attempt, min(step) FROM metric WHERE name = 'optim/loss' GROUP BY attempt ORDER BY attempt"
    )
    prefix = f"{table}." if table else ""
    later = [f"NOT ({prefix}attempt < {int(attempt)} AND {prefix}step >= {int(step)})" for attempt, step in starts[1:]]
    return " AND ".join(later) or "1"


def steps(reader: RunReader, points: int = POINTS) -> Steps:
    """Which steps to draw. The first and last steps are those of the training metrics."""
    row = reader.rows(f"SELECT min(step), max(step) FROM metric WHERE name = 'optim/loss' AND {current(reader)}")[0]
    if row[0] is None:
        return Steps(0, 0, ())
    first, last = int(row[0]), int(row[1])
    stride = -(-(last - first + 1) // max(1, points))
    return Steps(first, last, tuple(range(last, first - 1, -stride))[::-1])


def metrics(reader: RunReader, names: Iterable[str], shown: Steps) -> pd.DataFrame:
    """One row a shown step, one column a name; NaN where nothing was recorded.

    Several values of one step (after a resume) leave the newest.
    """
    wanted = list(dict.fromkeys(names))
    index = pd.Index(shown.shown, name="step")
    if shown.empty or not wanted:
        return pd.DataFrame(index=index, columns=wanted, dtype=float)
    rows = reader.rows(
        f"SELECT step, name, value FROM metric WHERE name IN ({_marks(wanted)}) AND step IN ({_integers(shown.shown)}) "
        f"AND {current(reader)} ORDER BY id",
        wanted,
    )
    columns: dict[str, dict[int, float | None]] = {name: {} for name in wanted}
    for step, name, value in rows:
        columns[name][step] = value
    return pd.DataFrame(
        {name: pd.Series(values, dtype=float) for name, values in columns.items()}, index=index, columns=wanted
    )


def metric_names(reader: RunReader, pattern: str) -> list[str]:
    """Names of metrics that match a GLOB pattern, sorted; steps through the index, not the rows."""
    return [
        str(row[0])
        for row in reader.rows(
            "WITH RECURSIVE t(name) AS (SELECT min(name) FROM metric UNION ALL "
            "SELECT (SELECT min(name) FROM metric WHERE name > t.name) FROM t WHERE t.name IS NOT NULL) "
            "SELECT name FROM t WHERE name GLOB ? ORDER BY name",
            (pattern,),
        )
    ]


def evaluations(reader: RunReader, points: int = POINTS) -> pd.DataFrame:
    """Columns step and one for each `eval/...` metric; step 0 is before training."""
    names = metric_names(reader, "eval/*")
    if not names:
        return pd.DataFrame(columns=["step"])
    rows = reader.rows(
        f"SELECT step, name, value FROM metric WHERE name IN ({_marks(names)}) AND {current(reader)} ORDER BY id", names
    )
    table: dict[int, dict[str, float | None]] = {}
    for step, name, value in rows:
        table.setdefault(step, {})[name] = value
    kept = _thinned(sorted(table), points)
    return pd.DataFrame([{"step": step, **table[step]} for step in kept], columns=["step", *names])


def phase_times(reader: RunReader, shown: Steps) -> pd.DataFrame:
    """Seconds, one row a shown step and one column a phase, in the order in which phases first appear."""
    if shown.empty:
        return pd.DataFrame(index=pd.Index([], name="step"))
    rows = reader.rows(
        f"SELECT step, phase, seconds FROM phase_time WHERE step IN ({_integers(shown.shown)}) "
        f"AND {current(reader)} ORDER BY id"
    )
    columns: dict[str, dict[int, float]] = {}
    for step, phase, seconds in rows:
        columns.setdefault(phase, {})[step] = seconds
    return pd.DataFrame(
        {phase: pd.Series(values, dtype=float) for phase, values in columns.items()},
        index=pd.Index(shown.shown, name="step"),
    )


def memory(reader: RunReader, points: int = POINTS) -> pd.DataFrame:
    """Columns ts, step, phase, allocated, reserved, rss, in order; neighbours are merged into their peak."""
    first, last = reader.rows("SELECT min(id), max(id) FROM memory_sample")[0]
    columns = ["ts", "step", "phase", "allocated", "reserved", "rss"]
    if last is None:
        return pd.DataFrame(columns=columns)
    stride = -(-(int(last) - int(first) + 1) // max(1, points))
    rows = reader.rows(
        "SELECT max(ts), max(step), phase, max(allocated), max(reserved), max(rss) FROM memory_sample "
        "GROUP BY (? - id) / ? ORDER BY id",
        (int(last), stride),
    )
    return pd.DataFrame(rows, columns=columns).astype({"allocated": float, "reserved": float, "rss": float})


def newest_memory_time(reader: RunReader) -> float:
    row = reader.rows("SELECT ts FROM memory_sample ORDER BY id DESC LIMIT 1")
    return float(row[0][0]) if row else 0.0


def minimap(reader: RunReader, last_columns: int = MINIMAP_COLUMNS) -> pd.DataFrame:
    """Columns step, row (0 first), mean, spread: groups of evenly spaced steps, at most `MINIMAP_ROWS` a step."""
    shown = _group_steps(reader, last_columns)
    if not shown:
        return pd.DataFrame(columns=["step", "row", "mean", "spread"])
    rows = reader.rows(
        f"SELECT step, row_number() OVER (PARTITION BY step ORDER BY id) - 1 AS place, reward_mean, reward_std "
        f"FROM prompt_group WHERE split = 'train' AND step IN ({_integers(shown)}) AND {current(reader)} ORDER BY id"
    )
    kept = [row for row in rows if row[1] < MINIMAP_ROWS]
    return pd.DataFrame(kept, columns=["step", "row", "mean", "spread"])


def advantages(reader: RunReader, columns: int = HEAT_COLUMNS) -> pd.DataFrame:
    """Columns step, advantage: every training completion of evenly spaced steps."""
    shown = _group_steps(reader, columns)
    if not shown:
        return pd.DataFrame(columns=["step", "advantage"])
    rows = reader.rows(
        f"SELECT g.step, c.advantage FROM prompt_group g JOIN completion c ON c.group_id = g.id "
        f"WHERE g.split = 'train' AND g.step IN ({_integers(shown)}) "
        f"AND c.advantage IS NOT NULL AND {current(reader, 'g')}"
    )
    return pd.DataFrame(rows, columns=["step", "advantage"])


def group_range(reader: RunReader) -> tuple[int, int]:
    """First and last step that has training groups; (0, 0) when there is none."""
    row = reader.rows(f"SELECT min(step), max(step) FROM prompt_group WHERE split = 'train' AND {current(reader)}")[0]
    return (0, 0) if row[0] is None else (int(row[0]), int(row[1]))


def nearest_group_step(reader: RunReader, step: int) -> int | None:
    """The step with training groups at or before `step`, else the first after it; None when there is none."""
    condition = f"split = 'train' AND {current(reader)}"
    before = reader.rows(f"SELECT max(step) FROM prompt_group WHERE step <= ? AND {condition}", (step,))[0][0]
    if before is not None:
        return int(before)
    after = reader.rows(f"SELECT min(step) FROM prompt_group WHERE step > ? AND {condition}", (step,))[0][0]
    return None if after is None else int(after)


def groups_of_step(reader: RunReader, step: int) -> pd.DataFrame:
    """Columns group, prompt (its first 200 characters), mean, spread, reward, advantage: one row a completion."""
    rows = reader.rows(
        f"SELECT g.id, substr(g.prompt, 1, 200), g.reward_mean, g.reward_std, c.reward, c.advantage "
        f"FROM (SELECT * FROM prompt_group WHERE split = 'train' AND step = ? AND {current(reader)} "
        f"ORDER BY id LIMIT ?) g "
        f"LEFT JOIN completion c ON c.group_id = g.id ORDER BY g.id, c.advantage IS NULL, c.advantage DESC, c.idx",
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


def seen_at(reader: RunReader, group_id: int, most: int = 8) -> list[int]:
    """The last steps at which this group's prompt was trained on, oldest first."""
    rows = reader.rows(
        f"SELECT DISTINCT step FROM prompt_group WHERE split = 'train' AND {current(reader)} AND step > "
        "(SELECT max(step) - 500 FROM prompt_group) AND prompt = (SELECT prompt FROM prompt_group WHERE id = ?) "
        "ORDER BY step DESC LIMIT ?",
        (group_id, most),
    )
    return [int(row[0]) for row in rows][::-1]


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
        f"FROM score WHERE completion_id IN ({_integers(completion_ids)})"
    )
    columns = ["completion", "verifier", "value", "weight", "reason", "extracted", "outcome"]
    return pd.DataFrame(rows, columns=columns).astype({"value": float, "weight": float})


def full_text(reader: RunReader, kind: str, row_id: int) -> str | None:
    """The whole text of a completion or, for kind "prompt", of a group's prompt, up to `LONG_TEXT`."""
    statement = {
        "completion": "SELECT substr(text, 1, ?) FROM completion WHERE id = ?",
        "prompt": "SELECT substr(prompt, 1, ?) FROM prompt_group WHERE id = ?",
    }.get(kind)
    rows = reader.rows(statement, (LONG_TEXT, row_id)) if statement else []
    return str(rows[0][0]) if rows else None


def recent_events(reader: RunReader, after: int = 0) -> list[Event]:
    """The newest events after a row, at most `EVENTS`, oldest first."""
    rows = reader.rows("SELECT id FROM event WHERE id > ? ORDER BY id DESC LIMIT 1 OFFSET ?", (after, EVENTS))
    return reader.events(after=int(rows[0][0]) if rows else after, limit=EVENTS)


def abstentions(reader: RunReader, verifier: str) -> float | None:
    """On how many training completions the verifier abstained; None when that was not recorded."""
    row = reader.rows(
        f"SELECT sum(value) FROM metric WHERE name = ? AND {current(reader)}", (f"verifier/{verifier}/abstained",)
    )[0]
    return None if row[0] is None else float(row[0])


def step_seconds(reader: RunReader, over: int = 10) -> float | None:
    """Wall-clock seconds a step over the last steps of the newest attempt, evaluations included."""
    rows = reader.rows(
        "SELECT step, ts FROM metric WHERE name = 'optim/loss' AND attempt = (SELECT max(attempt) FROM metric) "
        "ORDER BY id DESC LIMIT ?",
        (over + 1,),
    )
    if len(rows) < 2 or rows[0][0] == rows[-1][0]:
        return None
    return float((rows[0][1] - rows[-1][1]) / (rows[0][0] - rows[-1][0]))


def _group_steps(reader: RunReader, columns: int) -> list[int]:
    first, last = group_range(reader)
    if last == 0:
        return []
    stride = -(-(last - first + 1) // columns)
    return list(range(last, first - 1, -stride))[::-1]


def _thinned(values: Sequence[int], points: int) -> list[int]:
    stride = -(-len(values) // points) if values else 1
    return list(values[::-1][::stride][::-1])


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" for _ in values)


def _integers(values: Iterable[int]) -> str:
    return ", ".join(str(int(value)) for value in values)
