"""Memory samples of a few steps of a run, told by where in their phase they were taken and not by the clock.

So two runs of unequal speed can be laid over each other, phase on phase.
"""

from __future__ import annotations

import pandas as pd

from grpo_studio.queries.steps import Steps, phase_times
from grpo_studio.store.reader import RunReader, current

TIMELINE_STEPS = 6
SAMPLES_AT_MOST = 20_000
POINTS_A_PHASE = 40
COLUMNS = ("step", "phase", "share", "value")


def samples_of(reader: RunReader, first: int, last: int) -> pd.DataFrame:
    """Columns step, phase, share (0 to 1, where in its phase a sample lies), value (bytes), in order of time.

    The value is what the device allocated, or the process's resident memory where no device keeps a count; of several
    devices the greatest.
    """
    begin = _first_id(reader, first)
    rows = reader.rows(
        "SELECT step, phase, ts, max(coalesce(allocated, rss)) FROM (SELECT * FROM memory_sample WHERE id >= ? "
        f"ORDER BY id LIMIT ?) WHERE step BETWEEN ? AND ? AND {current(reader)} "
        "AND coalesce(allocated, rss) IS NOT NULL GROUP BY step, phase, ts ORDER BY min(id)",
        (begin, SAMPLES_AT_MOST, first, last),
    )
    frame = pd.DataFrame(rows, columns=["step", "phase", "ts", "value"]).astype({"value": float})
    within = frame.groupby(["step", "phase"], sort=False)["ts"]
    frame["share"] = (within.cumcount() + 0.5) / within.transform("size")
    frame["part"] = (frame["share"] * POINTS_A_PHASE).astype(int)
    greatest = frame.groupby(["step", "phase", "part"], sort=False)["value"].idxmax()
    return frame.loc[greatest, list(COLUMNS)].reset_index(drop=True)


def phase_shares(reader: RunReader, first: int, last: int) -> dict[str, float]:
    """Mean seconds of each phase in these steps."""
    found = phase_times(reader, Steps(first, last, tuple(range(first, last + 1))))
    return {str(name): float(value) for name, value in found.mean().items() if value == value}


def _first_id(reader: RunReader, step: int) -> int:
    """Id of the first sample of a step in the newest attempt that has it, by halving: ids come in order of time."""
    ends = reader.rows("SELECT min(id), max(id) FROM memory_sample")[0]
    if ends[0] is None:
        return 0
    attempt = next((span.attempt for span in reversed(reader.spans()) if span.before is None or step < span.before), 1)
    low, high = int(ends[0]), int(ends[1]) + 1
    while low < high:
        middle = (low + high) // 2
        found = reader.rows("SELECT attempt, step FROM memory_sample WHERE id >= ? ORDER BY id LIMIT 1", (middle,))
        if found and tuple(found[0]) < (attempt, step):
            low = middle + 1
        else:
            high = middle
    return low
