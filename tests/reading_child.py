"""`python reading_child.py RUN_DB SECONDS`: read without pause, and require each snapshot to be whole; prints how many.

A step of the writer is one transaction of 2 groups, 8 completions, 16 scores, 30 metrics and an event.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from grpo_studio.run_state import RECORDS_LOST
from grpo_studio.store.reader import RunReader


def look(path: Path) -> int:
    with RunReader(path) as reader, reader.snapshot():
        [(steps, last)] = reader.rows("SELECT count(*), coalesce(max(step), 0) FROM metric WHERE name = 'optim/loss'")
        assert steps == last
        assert reader.last_step() == steps
        groups, completions = reader.counts()
        assert (groups, completions) == (2 * steps, 8 * steps)
        assert reader.rows("SELECT count(*) FROM score") == [(16 * steps,)]
        assert reader.rows("SELECT count(*) FROM metric") == [(30 * steps,)]
        events = reader.events()
        assert sum(event.kind == "step" for event in events) == steps
        assert all(event.kind != RECORDS_LOST for event in events)
        assert [event.id for event in events] == list(range(1, len(events) + 1))
        return int(steps)


def main(path: Path, seconds: float) -> None:
    ends, seen = time.monotonic() + seconds, []
    while time.monotonic() < ends:
        seen.append(look(path))
    assert seen == sorted(seen), "a later look saw less"
    print(len(seen), len(set(seen)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
