"""What recording costs: one quickstart run in which every other step is recorded, and the rest is not.

    python -m bench.recording [STEPS]

Prints the median step with and without recording, their ratio, and the time spent inside the recorder itself, which
is the sharper figure: a step's own time varies more from step to step than recording costs.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.config_files import read_preset, with_overrides
from grpo_studio.devices import worker_environment
from grpo_studio.settings import BUNDLED_PRESETS, Settings


def main(steps: int) -> None:
    from grpo_studio.stopping import StopFlag
    from grpo_studio.store.folder import create_run
    from grpo_studio.store.writer import RunWriter
    from grpo_studio.training.memory_watch import MemoryWatch
    from grpo_studio.training.recorder import Recorder
    from grpo_studio.training.scored_batch import ScoredBatch
    from grpo_studio.training.session import Session

    spent: dict[bool, list[float]] = {True: [], False: []}
    inside: list[float] = []

    class EveryOther(Recorder):
        """Records odd steps; on even steps does nothing at all, and the memory watch rests."""

        def __init__(self, *arguments: Any, memory: MemoryWatch) -> None:
            super().__init__(*arguments, memory)
            self.watch = memory
            self.ended = time.perf_counter()
            self.cost = 0.0

        def batch_scored(self, step: int, batch: ScoredBatch) -> None:
            if step % 2:
                self.timed(super().batch_scored, step, batch)

        def step_done(self, step: int, logs: Mapping[str, Any]) -> None:
            if step % 2:
                self.timed(super().step_done, step, logs)
                inside.append(self.cost)
            now = time.perf_counter()
            spent[bool(step % 2)].append(now - self.ended)
            self.cost = 0.0
            self.watch.paused = step % 2 == 1
            self.ended = time.perf_counter()

        def timed(self, call: Callable[..., None], *arguments: Any) -> None:
            began = time.perf_counter()
            call(*arguments)
            self.cost += time.perf_counter() - began

    class HalfRecorded(Session):
        def _recorder(self, memory: MemoryWatch) -> Recorder:
            return EveryOther(self._writer, self._clock, memory=memory)

    overrides = [f"algorithm.steps={steps}", "dataset.held_out=0", "evaluation.every=0"]
    config = RunConfig.model_validate(with_overrides(read_preset("quickstart", [BUNDLED_PRESETS]), overrides))
    with tempfile.TemporaryDirectory() as home:
        folder = create_run(Path(home), config, "recording")
        writer = RunWriter(folder.database, attempt=1)
        HalfRecorded(config, Settings.from_env(), folder, writer, StopFlag()).run()
        writer.close()
    report(spent, inside)


def report(spent: dict[bool, list[float]], inside: list[float]) -> None:
    """Print the table; the first step of each kind warms up and does not count."""
    recorded, plain = (statistics.median(spent[kind][1:]) for kind in (True, False))
    cost = statistics.median(inside[1:])
    print(f"{'steps':<28}{'count':>8}{'median, s':>12}")
    print(f"{'recorded':<28}{len(spent[True]) - 1:>8}{recorded:>12.3f}")
    print(f"{'not recorded':<28}{len(spent[False]) - 1:>8}{plain:>12.3f}")
    print(f"{'inside the recorder':<28}{len(inside) - 1:>8}{cost:>12.4f}")
    print(f"recorded / not recorded: {recorded / plain:.3f}; inside the recorder: {cost / recorded:.2%} of a step")


if __name__ == "__main__":
    import os

    missing = {name: value for name, value in worker_environment().items() if name not in os.environ}
    if missing:  # the allocator reads its settings as the process starts
        os.execve(sys.executable, [sys.executable, "-m", "bench.recording", *sys.argv[1:]], {**os.environ, **missing})
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
