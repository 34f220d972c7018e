"""From the store to pandas frames, bounded in size and in work whatever the run's length; the newest row is kept.

After a resume the rows past its checkpoint stay in the file; every query here leaves those superseded rows out.
Imports neither torch nor gradio.
"""

from grpo_studio.queries.groups import (
    INSPECTOR_COMPLETIONS,
    STRIP_SQUARES,
    Seen,
    completions,
    group,
    groups_of_step,
    nearest_group_step,
    scores,
    seen_at,
)
from grpo_studio.queries.memory import MemoryHistory, newest_memory_time
from grpo_studio.queries.memory_peaks import MemoryPeaks, PhasePeak, Watched, memory_snapshot, watched
from grpo_studio.queries.overview import HEAT_COLUMNS, MINIMAP_COLUMNS, MINIMAP_ROWS, advantages, group_range, minimap
from grpo_studio.queries.steps import (
    POINTS,
    Steps,
    ends,
    evaluations,
    last_steps,
    metric_names,
    metrics,
    phase_times,
    step_seconds,
    steps,
)
from grpo_studio.queries.texts import (
    EVENTS,
    LONG_TEXT,
    SHORT_TEXT,
    count_events,
    full_text,
    held_out_prompts,
    recent_events,
)
from grpo_studio.queries.totals import Totals

__all__ = [
    "EVENTS",
    "HEAT_COLUMNS",
    "INSPECTOR_COMPLETIONS",
    "LONG_TEXT",
    "MINIMAP_COLUMNS",
    "MINIMAP_ROWS",
    "POINTS",
    "SHORT_TEXT",
    "STRIP_SQUARES",
    "MemoryHistory",
    "MemoryPeaks",
    "PhasePeak",
    "Seen",
    "Steps",
    "Totals",
    "Watched",
    "advantages",
    "completions",
    "count_events",
    "ends",
    "evaluations",
    "full_text",
    "group",
    "group_range",
    "groups_of_step",
    "held_out_prompts",
    "last_steps",
    "memory_snapshot",
    "metric_names",
    "metrics",
    "minimap",
    "nearest_group_step",
    "newest_memory_time",
    "phase_times",
    "recent_events",
    "scores",
    "seen_at",
    "step_seconds",
    "steps",
    "watched",
]
