"""The queue as the Runs page shows it: what trains now, then what waits, in order. No gradio here."""

from __future__ import annotations

from typing import Any

from grpo_studio.job_queue import JobQueue
from grpo_studio.settings import Settings
from grpo_studio.ui.live_run import run_name

MOST_SHOWN = 100


def queue_rows(settings: Settings) -> list[dict[str, Any]]:
    """[{"run", "name", "place", "enqueued", "devices"}]; `place` is 0 for a run that was taken, 1 for the next one.

    A run of another runs folder has no "run": it holds its place, and nothing can be asked of it here.

    Raises:
        StoreError: the queue cannot be read.
    """
    return [
        {
            "run": job.run_dir.name if job.run_dir.parent == settings.runs_dir else None,
            "name": run_name(job.run_dir.name),
            "place": job.place or 0,
            "enqueued": job.enqueued,
            "devices": list(job.devices or ()),
        }
        for job in JobQueue(settings.queue_path).jobs()[:MOST_SHOWN]
    ]
