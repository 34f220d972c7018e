"""Whether the worker's allocator settings on a CPU pay: quickstart steps with and without them, in turn.

python bench/allocator.py [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from bench.workers import quickstart_run, series
from grpo_studio.devices import CPU_ENVIRONMENT

STEPS = 5
OVERRIDES = [f"algorithm.steps={STEPS}", "dataset.held_out=0", "evaluation.every=0"]


def main(rounds: int) -> None:
    plain = {name: value for name, value in CPU_ENVIRONMENT.items() if not name.startswith("MALLOC_")}
    kinds = {"as glibc does": plain, "as the worker does": CPU_ENVIRONMENT}
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    rewards: dict[str, set[tuple[float, ...]]] = {kind: set() for kind in kinds}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(rounds):
            for kind, environment in kinds.items():
                folder = quickstart_run(Path(home), OVERRIDES, environment, "allocator")
                seconds[kind] += list(series(folder, "time/step").values())[1:]
                rewards[kind].add(tuple(series(folder, "reward/mean").values()))
    print(f"{'allocator':<22}{'steps':>8}{'median, s':>12}{'least, s':>12}{'most, s':>12}")
    for kind, values in seconds.items():
        print(f"{kind:<22}{len(values):>8}{statistics.median(values):>12.2f}{min(values):>12.2f}{max(values):>12.2f}")
    first, second = (statistics.median(values) for values in seconds.values())
    same = len(set.union(*rewards.values())) == 1
    print(f"ratio {second / first:.3f}; rewards {'equal in all runs' if same else 'differ'}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
