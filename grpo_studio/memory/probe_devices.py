"""The devices of a probe: it waits for none, and shares them with a run on a CPU, or where that is asked for."""

from __future__ import annotations

from grpo_studio.config import RunConfig
from grpo_studio.devices import Claim, claim, shortage
from grpo_studio.errors import TrainingError
from grpo_studio.job_queue import JobQueue
from grpo_studio.settings import Settings


def probe_claim(config: RunConfig, settings: Settings, anyway: bool, notes: list[str]) -> Claim:
    """Devices for one process; adds to `notes` when a run has them, too.

    Raises:
        TrainingError: there are none, or a run holds the GPU and it was not said to go on `anyway`.
    """
    if reason := shortage(config):
        raise TrainingError(f"a probe cannot be started here: {reason}")
    taken = [job for job in JobQueue(settings.queue_path).jobs() if job.taken is not None]
    busy = frozenset(name for job in taken for name in job.devices or ("unknown",))
    free, shared = claim(config, busy), claim(config)
    if free is not None:
        return free
    if shared is None or (shared.trainer and not anyway):
        raise TrainingError(
            f"a run holds the GPU that a probe needs ({taken[0].run_dir.name}); wait until it has ended, or give "
            "--anyway: both are slower then, and may run out of memory"
        )
    notes.append(f"the run {taken[0].run_dir.name} was at work on the same device, so all times are too long")
    return shared
