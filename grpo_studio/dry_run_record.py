"""What a dry run recorded, read as one iteration: the first batch of steps warms up, the second one is measured."""

from __future__ import annotations

from collections.abc import Mapping

from grpo_studio.config import RunConfig
from grpo_studio.dry_run_estimate import ASIDE, Iteration
from grpo_studio.spending import SpendingCount
from grpo_studio.store.reader import RunReader

PEAK = "memory/peak/"


def steps_done(reader: RunReader) -> int:
    return reader.last_step()


def read_iteration(reader: RunReader, config: RunConfig) -> Iteration:
    """The measured iteration of a dry run of `config` that has done all its steps."""
    first = config.algorithm.num_iterations + 1
    last = 2 * config.algorithm.num_iterations
    times = _times(reader)
    step: dict[str, float] = {}
    for number in range(first, last + 1):
        for phase, seconds in times.get(number, {}).items():
            if phase not in ASIDE:
                step[phase] = step.get(phase, 0.0) + seconds / (last - first + 1)
    evaluations = [times[number]["evaluate"] for number in sorted(times) if "evaluate" in times[number]]
    saves = [phases["save"] for phases in times.values() if "save" in phases]
    tokens, completions = reader.rows(
        "SELECT sum(c.tokens), count(*) FROM completion c JOIN prompt_group g ON g.id = c.group_id "
        "WHERE g.split = 'train' AND g.step = ?",
        (first,),
    )[0]
    live = reader.rows("SELECT value FROM metric WHERE name = 'group/effective_batch' AND step = ?", (first,))
    return Iteration(
        loading=max(0.0, SpendingCount().prepared(reader) - times.get(0, {}).get("evaluate", 0.0)),
        step=step,
        evaluate=evaluations[-1] if evaluations else None,
        save=min(saves, default=0.0),
        tokens=int(tokens or 0),
        length=int(tokens or 0) / max(1, int(completions)),
        peaks=_peaks(reader),
        live=None if not live or live[0][0] is None else float(live[0][0]) / config.completions_per_step,
    )


def _times(reader: RunReader) -> Mapping[int, dict[str, float]]:
    times: dict[int, dict[str, float]] = {}
    for step, phase, seconds in reader.rows("SELECT step, phase, seconds FROM phase_time ORDER BY id"):
        phases = times.setdefault(int(step), {})
        phases[str(phase)] = phases.get(str(phase), 0.0) + float(seconds)
    return times


def _peaks(reader: RunReader) -> dict[str, int]:
    rows = reader.rows(f"SELECT name, max(value) FROM metric WHERE name GLOB '{PEAK}*' GROUP BY name")
    return {str(name).removeprefix(PEAK): int(value) for name, value in rows if value is not None}
