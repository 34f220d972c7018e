"""Metrics, evaluations and times by step: at most `POINTS` steps, the first and the last always among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from grpo_studio.queries.current import first_and_last, integers, marks
from grpo_studio.store.reader import RunReader, current

POINTS = 600
LOSS = "name = 'optim/loss'"


@dataclass(frozen=True)
class Steps:
    """The steps of a run that are drawn: at most `POINTS`, evenly spaced, with the first and the last one."""

    first: int
    last: int
    shown: tuple[int, ...]

    @property
    def empty(self) -> bool:
        return not self.shown


def steps(reader: RunReader, points: int = POINTS) -> Steps:
    """Which steps to draw. The first and last steps are those of the training metrics."""
    found = first_and_last(reader, "metric", LOSS)
    if found is None:
        return Steps(0, 0, ())
    first, last = found
    return Steps(first, last, tuple(thinned(range(first, last + 1), points)))


def last_steps(shown: Steps, count: int) -> Steps:
    """The last `count` steps themselves, however thinly the run is drawn."""
    if shown.empty:
        return shown
    first = max(shown.first, shown.last - count + 1)
    return Steps(first, shown.last, tuple(range(first, shown.last + 1)))


def metrics(reader: RunReader, names: Iterable[str], shown: Steps) -> pd.DataFrame:
    """One row a shown step, one column a name; NaN where nothing was recorded.

    Several values of one step (after a resume) leave the newest.
    """
    wanted = list(dict.fromkeys(names))
    index = pd.Index(shown.shown, name="step")
    if shown.empty or not wanted:
        return pd.DataFrame(index=index, columns=wanted, dtype=float)
    rows = reader.rows(
        f"SELECT step, name, value FROM metric WHERE name IN ({marks(wanted)}) AND step IN ({integers(shown.shown)}) "
        f"AND {current(reader)} ORDER BY id",
        wanted,
    )
    columns: dict[str, dict[int, float | None]] = {name: {} for name in wanted}
    for step, name, value in rows:
        columns[name][step] = value
    return pd.DataFrame(
        {name: pd.Series(values, dtype=float) for name, values in columns.items()}, index=index, columns=wanted
    )


def ends(reader: RunReader, name: str) -> tuple[float | None, float | None]:
    """The first and the newest value of a metric, from the rows themselves and not from those that are drawn."""
    found: list[tuple[int, int, float]] = []
    for span in reader.spans():
        limit = "" if span.before is None else f" AND step < {span.before}"
        for order in ("ASC", "DESC"):
            found += reader.rows(
                f"SELECT step, id, value FROM metric WHERE name = ? AND attempt = {span.attempt}{limit} "
                f"AND value IS NOT NULL ORDER BY step {order} LIMIT 1",
                (name,),
            )
    return (float(min(found)[2]), float(max(found)[2])) if found else (None, None)


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
    # Which steps there are is read from the index alone; values only for those that are drawn.
    found: set[int] = set()
    for name in names:
        rows = reader.rows(f"SELECT DISTINCT step FROM metric WHERE name = ? AND {current(reader)}", (name,))
        found.update(int(row[0]) for row in rows)
    kept = thinned(sorted(found), points)
    if not kept:
        return pd.DataFrame(columns=["step", *names])
    return metrics(reader, names, Steps(kept[0], kept[-1], tuple(kept))).reset_index()


def phase_times(reader: RunReader, shown: Steps) -> pd.DataFrame:
    """Seconds, one row a shown step and one column a phase, in the order in which phases first appear."""
    if shown.empty:
        return pd.DataFrame(index=pd.Index([], name="step"))
    rows = reader.rows(
        f"SELECT step, phase, seconds FROM phase_time WHERE step IN ({integers(shown.shown)}) "
        f"AND {current(reader)} ORDER BY id"
    )
    columns: dict[str, dict[int, float]] = {}
    for step, phase, seconds in rows:
        columns.setdefault(phase, {})[step] = seconds
    return pd.DataFrame(
        {phase: pd.Series(values, dtype=float) for phase, values in columns.items()},
        index=pd.Index(shown.shown, name="step"),
    )


def step_seconds(reader: RunReader, over: int = 10) -> float | None:
    """Wall-clock seconds a step over the last steps of the newest attempt, evaluations included."""
    rows = reader.rows(
        f"SELECT step, ts FROM metric WHERE {LOSS} AND attempt = (SELECT max(attempt) FROM metric WHERE {LOSS}) "
        "ORDER BY step DESC LIMIT ?",
        (over + 1,),
    )
    if len(rows) < 2 or rows[0][0] == rows[-1][0]:
        return None
    return float((rows[0][1] - rows[-1][1]) / (rows[0][0] - rows[-1][0]))


def thinned(values: Sequence[int], points: int) -> list[int]:
    """At most `points` of the values, evenly spaced back from the last one; the first one stays as well."""
    if len(values) <= points:
        return list(values)
    stride = -(-len(values) // max(1, points - 1))
    kept = list(values[::-1][::stride][::-1])
    return kept if kept[0] == values[0] else [values[0], *kept]
